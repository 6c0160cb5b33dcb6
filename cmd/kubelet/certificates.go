package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/keypair"
	"bonsai/pkg/kubelet/certificate"
	"bonsai/pkg/kubelet/kubeclient"
	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/server"
)

// identity is the kubelet's connection to the API server, and what keeps its certificate valid.
type identity struct {
	connection *rest.Config
	// certificates renews the client certificate; nil: nothing does.
	certificates *certificate.Manager
}

// connect makes the connection to the API server. A node with only a bootstrap kubeconfig first requests a client
// certificate, and waits until it is signed (TLS bootstrapping). The kubeconfig that this writes is then read like any
// other.
func connect(ctx context.Context, s *settings, node string, registry prometheus.Registerer,
	log *slog.Logger) (*identity, error) {
	store := certificate.Store{Dir: filepath.Clean(s.certDir), Prefix: "kubelet-client"}
	var bootstrap *kubeclient.Client // nil: none
	if s.bootstrapKubeconfig != "" {
		config, err := daemon.Kubeconfig("--bootstrap-kubeconfig", s.bootstrapKubeconfig, "", component)
		if err != nil {
			return nil, err
		}
		over, err := daemon.Connect(config)
		if err != nil {
			return nil, err
		}
		if bootstrap, err = kubeclient.New(over); err != nil {
			return nil, fmt.Errorf("make a client for the bootstrap: %w", err)
		}
		err = certificate.Bootstrap(ctx, certificate.BootstrapConfig{Kubeconfig: s.kubeconfig, Connection: config,
			Requests: bootstrap,
			Store:    store, Node: node, Now: time.Now, Log: log})
		if err != nil {
			return nil, err
		}
	}
	config, err := daemon.Kubeconfig("--kubeconfig", s.kubeconfig, "", component)
	if err != nil {
		return nil, err
	}
	// The files are used as they are, until the kubelet starts again.
	if !s.file.RotateCertificates {
		connection, err := daemon.Connect(config)
		return &identity{connection: connection}, err
	}
	return rotating(config, store, bootstrap, node, certificate.NewClientMetrics(registry), log)
}

// rotating makes a connection whose client certificate is renewed. If the certificate has expired, the bootstrap
// credentials, if there are any, request the next one: the API server refuses the expired one. A renewal closes all
// connections, because a connection keeps the identity of its handshake.
func rotating(config *rest.Config, store certificate.Store, bootstrap *kubeclient.Client, node string,
	m *certificate.Metrics, log *slog.Logger) (*identity, error) {
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	var first *tls.Certificate
	if len(config.CertData) > 0 {
		pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig: the client certificate: %w", err)
		}
		first = &pair
	}
	held := certificate.NewHeld(time.Now)
	connection, closeAll, err := daemon.ConnectAs(config, held.Current)
	if err != nil {
		return nil, err
	}
	own, err := kubeclient.New(connection)
	if err != nil {
		return nil, fmt.Errorf("make a client for certificates: %w", err)
	}
	certificates, err := certificate.NewManager(certificate.Config{Held: held, Store: store, First: first,
		Signer: certificatesv1.KubeAPIServerClientKubeletSignerName, Usage: certificatesv1.UsageClientAuth,
		Template: func() *x509.CertificateRequest { return certificate.Client(node) }, Renewed: closeAll,
		Requests: func() (certificate.Requests, error) {
			if held.Current() == nil && bootstrap != nil {
				return bootstrap, nil
			}
			return own, nil
		},
		Metrics: m, Now: time.Now, Random: rand.Float64, Log: log})
	return &identity{connection: connection, certificates: certificates}, err
}

// servingCertificates renews the kubelet's serving certificate, which a signer of the cluster signs
// (serverTLSBootstrap). changed is notified when the node's addresses may have changed. Requests for it are not
// approved automatically, as in Kubernetes: the names in it must be checked.
func servingCertificates(s *settings, api *kubeclient.Client, node string, addresses func() []corev1.NodeAddress,
	changed notify.Signal,
	registry prometheus.Registerer, log *slog.Logger) (*certificate.Manager, error) {
	cfg := certificate.Config{Changed: changed,
		Store:  certificate.Store{Dir: filepath.Clean(s.certDir), Prefix: "kubelet-server"},
		Signer: certificatesv1.KubeletServingSignerName, Usage: certificatesv1.UsageServerAuth,
		Template: func() *x509.CertificateRequest { return certificate.Serving(node, addresses()) },
		Requests: func() (certificate.Requests, error) { return api, nil },
		Metrics:  certificate.NewServingMetrics(registry), Now: time.Now, Random: rand.Float64, Log: log}
	// The files serve until the first certificate is signed.
	if s.file.TLSCertFile != "" {
		pair, err := servingFiles(s, log)
		if err != nil {
			return nil, err
		}
		cfg.First = pair.Current()
	}
	return certificate.NewManager(cfg)
}

func servingFiles(s *settings, log *slog.Logger) (*keypair.Pair, error) {
	pair, err := keypair.Load(s.file.TLSCertFile, s.file.TLSPrivateKeyFile, log)
	if err != nil {
		return nil, fmt.Errorf("load the serving certificate: %w", err)
	}
	return pair, nil
}

// ownServing returns the current serving certificate without a signer: from the files, which are read again when they
// change, or a self-signed one, which is kept in the certificate directory.
func ownServing(s *settings, name string, addresses []string,
	log *slog.Logger) (func() *tls.Certificate, error) {
	if s.file.TLSCertFile != "" {
		pair, err := servingFiles(s, log)
		if err != nil {
			return nil, err
		}
		return pair.Current, nil
	}
	var ips []net.IP
	for _, ip := range addresses {
		ips = append(ips, net.ParseIP(ip))
	}
	cert, err := server.ServingCertificate(filepath.Clean(s.certDir), name, ips, time.Now())
	if err != nil {
		return nil, err
	}
	return func() *tls.Certificate { return &cert }, nil
}
