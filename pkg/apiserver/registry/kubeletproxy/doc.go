// Package kubeletproxy carries what the API server only passes on: pod logs, exec, attach and port-forward go to the
// kubelet of the pod's node, over TLS with the server's own client certificate; nodes/proxy goes there too; pods/proxy
// and services/proxy go straight to a pod. SPDY and old WebSocket upgrades pass through unchanged. The WebSocket
// versions that only API servers know become SPDY: v5.channel.k8s.io of exec and attach, SPDY/3.1+portforward.k8s.io of
// port-forward.
package kubeletproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/egress"
	"bonsai/pkg/apiserver/registry"
)

// Config says how kubelets and pods are reached.
type Config struct {
	Stores registry.Stores
	// CAFile checks the kubelets' serving certificates (--kubelet-certificate-authority); "" does not check them, as
	// upstream's default. CertFile and KeyFile are the client certificate (--kubelet-client-certificate, -key).
	CAFile, CertFile, KeyFile string
	// AddressTypes are tried in order (--kubelet-preferred-address-types); nil: upstream's default.
	AddressTypes []corev1.NodeAddressType
	// AllowLocal lets connections go to loopback and link-local addresses; for tests.
	AllowLocal bool
	// LocalNetworks are files of network namespaces whose addresses are this machine's too.
	LocalNetworks []string
	// AllowOwn reports whether connections to pods and Services may go to an address of this machine; nil: never.
	// Kubelets are reached there, too: they show a certificate, and are asked on their own port only.
	AllowOwn func(ctx context.Context, addr netip.Addr) bool
}

// Proxy has one method per subresource, each returning its registry.Connecter.
type Proxy struct {
	cfg     Config
	kubelet *http.Transport
	pods    *http.Transport
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
	tlsConfig, err := kubeletTLS(cfg)
	if err != nil {
		return nil, err
	}
	transport := func(d egress.Dialer, c *tls.Config) *http.Transport {
		return &http.Transport{DialContext: d.DialContext, TLSClientConfig: c, TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second}
	}
	p := &Proxy{
		cfg: cfg,
		toKubelets: egress.Dialer{AllowLocal: cfg.AllowLocal, AllowOwn: func(context.Context, netip.Addr) bool {
			return true
		}},
		toPods: egress.Dialer{AllowLocal: cfg.AllowLocal, Networks: cfg.LocalNetworks, AllowOwn: cfg.AllowOwn},
	}
	p.kubelet = transport(p.toKubelets, tlsConfig)
	// A pod's certificate is its own affair: upstream does not check it, and sends no client certificate.
	p.pods = transport(p.toPods, &tls.Config{InsecureSkipVerify: true})
	return p, nil
}

func kubeletTLS(cfg Config) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: cfg.CAFile == ""}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the kubelets' certificate authority: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading the kubelets' certificate authority: no certificate in %s", cfg.CAFile)
		}
	}
	if cfg.CertFile == "" && cfg.KeyFile == "" {
		return c, nil
	}
	if _, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile); err != nil {
		return nil, fmt.Errorf("reading the client certificate for kubelets: %w", err)
	}
	// Read at each handshake, so that a renewed certificate is used without a restart.
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		cert, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate for kubelets: %w", err)
		}
		return &cert, nil
	}
	return c, nil
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
