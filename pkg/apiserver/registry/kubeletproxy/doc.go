// Package kubeletproxy carries what the API server only passes on: pod logs, exec, attach and port-forward go to the
// kubelet of the pod's node, over TLS with the server's own client certificate; nodes/proxy goes there too; pods/proxy
// and services/proxy go straight to a pod. SPDY and old WebSocket upgrades pass through unchanged. The WebSocket
// versions that only API servers know become SPDY: v5.channel.k8s.io of exec and attach, SPDY/3.1+portforward.k8s.io of
// port-forward.
package kubeletproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/egress"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/authorities"
	"bonsai/pkg/keypair"
)

// Config says how kubelets and pods are reached.
type Config struct {
	Stores registry.Stores
	// CAFile checks the kubelets' serving certificates (--kubelet-certificate-authority); "" does not check them, as
	// upstream's default. CertFile and KeyFile are the client certificate (--kubelet-client-certificate, -key).
	CAFile, CertFile, KeyFile string
	// MaxBytesPerSec bounds what passes in each direction of an upgraded connection; 0: nothing does.
	MaxBytesPerSec int64
	// Log says when the files change. Default: discard.
	Log *slog.Logger
	// AddressTypes are tried in order (--kubelet-preferred-address-types); nil: upstream's default.
	AddressTypes []corev1.NodeAddressType
	// AllowLocal lets connections go to loopback and link-local addresses; for tests.
	AllowLocal bool
	// LocalNetworks are files of network namespaces whose addresses are this machine's too.
	LocalNetworks []string
	// AllowOwn reports whether connections to pods and Services may go to an address of this machine; nil: never.
	// Kubelets are reached there, too: they show a certificate, and are asked on their own port only.
	AllowOwn func(ctx context.Context, addr netip.Addr) bool
	// Dial opens all these connections through a proxy; nil: they are direct.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Proxy has one method per subresource, each returning its registry.Connecter.
type Proxy struct {
	cfg  Config
	pods *http.Transport
	// authorities vouch for kubelets; nil: nobody does.
	authorities *authorities.File
	mu          sync.Mutex
	kubelet     *http.Transport // for the generation of authorities
	generation  uint64
	// toKubelets and toPods are what the two connect with.
	toKubelets, toPods egress.Dialer
}

// New reads the certificates; it connects to nothing.
func New(cfg Config) (*Proxy, error) {
	if cfg.Stores == nil {
		return nil, errors.New("kubelet proxy: Stores is required")
	}
	if cfg.AddressTypes == nil {
		cfg.AddressTypes = []corev1.NodeAddressType{corev1.NodeHostName, corev1.NodeInternalDNS, corev1.NodeInternalIP,
			corev1.NodeExternalDNS, corev1.NodeExternalIP}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	p := &Proxy{
		cfg: cfg,
		toKubelets: egress.Dialer{AllowLocal: cfg.AllowLocal, AllowOwn: func(context.Context, netip.Addr) bool {
			return true
		}, Through: cfg.Dial},
		toPods: egress.Dialer{AllowLocal: cfg.AllowLocal, Networks: cfg.LocalNetworks, AllowOwn: cfg.AllowOwn,
			Through: cfg.Dial},
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: cfg.CAFile == ""}
	if err := p.readCertificates(config); err != nil {
		return nil, err
	}
	p.kubelet = transport(p.toKubelets, config)
	// A pod's certificate is its own affair: upstream does not check it, and sends no client certificate.
	p.pods = transport(p.toPods, &tls.Config{InsecureSkipVerify: true})
	return p, nil
}

// readCertificates reads what the flags name, and puts it into config.
func (p *Proxy) readCertificates(config *tls.Config) error {
	var err error
	if p.cfg.CAFile != "" {
		if p.authorities, err = authorities.NewFile(p.cfg.CAFile, p.cfg.Log); err != nil {
			return fmt.Errorf("--kubelet-certificate-authority: %w", err)
		}
		now := p.authorities.Bundle()
		config.RootCAs, p.generation = now.Pool, now.Generation
	}
	if p.cfg.CertFile == "" && p.cfg.KeyFile == "" {
		return nil
	}
	pair, err := keypair.Load(p.cfg.CertFile, p.cfg.KeyFile, p.cfg.Log)
	if err != nil {
		return fmt.Errorf("--kubelet-client-certificate, --kubelet-client-key: %w", err)
	}
	config.GetClientCertificate = pair.Client
	return nil
}

func transport(d egress.Dialer, c *tls.Config) *http.Transport {
	return &http.Transport{DialContext: d.DialContext, TLSClientConfig: c, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second}
}

// kubelets is the transport to kubelets, by the authorities that are in the file now. When these change, connections
// that nobody uses are closed, and those in use end with their requests.
func (p *Proxy) kubelets() *http.Transport {
	if p.authorities == nil {
		return p.kubelet
	}
	now := p.authorities.Bundle()
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Generation != p.generation {
		old := p.kubelet
		config := old.TLSClientConfig.Clone()
		config.RootCAs = now.Pool
		p.kubelet, p.generation = transport(p.toKubelets, config), now.Generation
		old.CloseIdleConnections()
	}
	return p.kubelet
}

// connecter is a registry.Connecter whose options are of type T.
type connecter[T runtime.Object] struct {
	options func(path string, q url.Values) (T, error)
	connect func(ctx context.Context, ns, name string, opts T, w http.ResponseWriter, r *http.Request) error
}

func (c connecter[T]) Options(path string, q url.Values) (runtime.Object, error) {
	return c.options(path, q)
}

func (c connecter[T]) Connect(ctx context.Context, ns, name string, opts runtime.Object, w http.ResponseWriter,
	r *http.Request) error {
	o, ok := opts.(T)
	if !ok {
		return apierrors.NewInternalError(fmt.Errorf("connect with options %T", opts))
	}
	return c.connect(ctx, ns, name, o, w, r)
}

// reader is a registry.Connecter that only reads: it has no options that admission is asked about.
type reader func(ctx context.Context, ns, name string, w http.ResponseWriter, r *http.Request) error

func (reader) Options(string, url.Values) (runtime.Object, error) { return nil, nil }

func (c reader) Connect(ctx context.Context, ns, name string, _ runtime.Object, w http.ResponseWriter,
	r *http.Request) error {
	return c(ctx, ns, name, w, r)
}

func (p *Proxy) get(ctx context.Context, resource, ns, name string) (runtime.Object, error) {
	store := p.cfg.Stores.Store(schema.GroupResource{Resource: resource})
	if store == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
	}
	return store.GetCached(ctx, ns, name)
}

func (p *Proxy) pod(ctx context.Context, ns, name string) (*corev1.Pod, error) {
	obj, err := p.get(ctx, "pods", ns, name)
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Pod), nil
}
