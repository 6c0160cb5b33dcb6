package certificate

import (
	"context"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"

	"bonsai/pkg/durable"
)

// BootstrapConfig is what Bootstrap needs.
type BootstrapConfig struct {
	// Kubeconfig is the file that is written. Connection is that of the bootstrap kubeconfig; the cluster is taken from
	// it.
	Kubeconfig string
	Connection *rest.Config
	Requests   Requests
	Store      Store
	Node       string
	Now        func() time.Time
	Log        *slog.Logger
}

// Bootstrap gets the first client certificate of a node and writes the kubeconfig that uses it, if there is none whose
// client certificate is valid. It waits for the API server and for whoever approves the request until ctx ends. A
// kubelet that is started again meanwhile goes on with the same key and the same request.
//
// The key is kept in a file of its own until the certificate is there; the name of the request follows from the key and
// the subject. So a restart finds the request that it made, instead of asking an approver again.
func Bootstrap(ctx context.Context, cfg BootstrapConfig) error {
	if usable(cfg.Kubeconfig, cfg.Now()) {
		return nil
	}
	keyFile := filepath.Join(cfg.Store.Dir, "kubelet-client.key.tmp")
	key, keyPEM, err := keptKey(keyFile)
	if err != nil {
		return err
	}
	certPEM, err := cfg.certificate(ctx, key)
	// With the old key the name would be the same, and the refusal would be found again.
	if errors.Is(err, errRefused) {
		// The next try shall make a request of its own.
		err = errors.Join(err, os.Remove(keyFile))
	}
	if err != nil {
		return fmt.Errorf("get the node's first client certificate: %w", err)
	}
	// The certificate before the kubeconfig that names it, and the key's own file last: after a crash each step is done
	// again.
	if _, err := cfg.Store.Update(certPEM, keyPEM, cfg.Now()); err != nil {
		return err
	}
	if err := writeKubeconfig(cfg.Kubeconfig, cfg.Connection, cfg.Store.Path()); err != nil {
		return err
	}
	cfg.Log.Info("has its first client certificate", "kubeconfig", cfg.Kubeconfig)
	return os.Remove(keyFile)
}

// usable: the file is a kubeconfig with a client certificate that is valid.
func usable(path string, now time.Time) bool {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return false
	}
	if err := rest.LoadTLSFiles(config); err != nil {
		return false
	}
	pair, err := tls.X509KeyPair(config.CertData, config.KeyData)
	return err == nil && now.Before(pair.Leaf.NotAfter)
}

// keptKey reads the key that an earlier start made, or makes one.
func keptKey(path string) (crypto.Signer, []byte, error) {
	data, err := os.ReadFile(path)
	if err == nil {
		if key, err := keyutil.ParsePrivateKeyPEM(data); err == nil {
			if signer, ok := key.(crypto.Signer); ok {
				return signer, data, nil
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read the node's key: %w", err)
	}
	key, data, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, nil, fmt.Errorf("make the directory of certificates: %w", err)
	}
	if err := durable.Write(path, data); err != nil {
		return nil, nil, fmt.Errorf("keep the node's key: %w", err)
	}
	return key, data, nil
}

// certificate makes the request, or finds the one that an earlier start made, and waits for its certificate.
//
// It tries for ever what may heal, with a delay of 2 s that doubles to 32 s. A token without the right to ask is an
// error at once.
func (cfg BootstrapConfig) certificate(ctx context.Context, key crypto.Signer) ([]byte, error) {
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, fmt.Errorf("encode the node's key: %w", err)
	}
	template := Client(cfg.Node)
	hash := sha256.Sum256(append(public, template.Subject.String()...))
	r, err := newRequest("node-csr-"+hex.EncodeToString(hash[:]), certificatesv1.KubeAPIServerClientKubeletSignerName,
		certificatesv1.UsageClientAuth, template, key)
	if err != nil {
		return nil, err
	}
	wait := firstRetry
	for {
		made, err := cfg.create(ctx, r, key)
		if err == nil {
			cfg.Log.Info("waiting for the node's first client certificate", "request", made.Name)
			return await(ctx, cfg.Requests, made.Name, made.UID, cfg.Log)
		}
		if errors.Is(err, errRefused) || apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) ||
			apierrors.IsInvalid(err) {
			return nil, err
		}
		cfg.Log.Warn("no certificate request made", "retry", wait, "err", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
		wait = min(2*wait, lastRetry)
	}
}

// create makes the request; one of the same name that is for the same key will do.
//
// Anybody who may create requests can take the name first; the public key shows whose it is.
func (cfg BootstrapConfig) create(ctx context.Context, r *certificatesv1.CertificateSigningRequest,
	key crypto.Signer) (*certificatesv1.CertificateSigningRequest, error) {
	made, err := cfg.Requests.CreateCertificateRequest(ctx, r)
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	if made, err = cfg.Requests.CertificateRequest(ctx, r.Name); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(made.Spec.Request)
	if block == nil {
		return nil, fmt.Errorf("%w: request %s is another's", errRefused, r.Name)
	}
	asked, err := x509.ParseCertificateRequest(block.Bytes)
	own, ok := key.Public().(interface{ Equal(x crypto.PublicKey) bool })
	if err != nil || !ok || !own.Equal(asked.PublicKey) || made.Spec.SignerName != r.Spec.SignerName {
		return nil, fmt.Errorf("%w: request %s is another's", errRefused, r.Name)
	}
	return made, nil
}

// writeKubeconfig writes a kubeconfig for the cluster of connection, with the certificate and the key of the file pair.
func writeKubeconfig(path string, connection *rest.Config, pair string) error {
	const cluster, user, context = "default-cluster", "default-auth", "default-context"
	pair, err := filepath.Abs(pair)
	if err != nil {
		return fmt.Errorf("find the directory of certificates: %w", err)
	}
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			cluster: {Server: connection.Host, InsecureSkipTLSVerify: connection.Insecure,
				TLSServerName:        connection.ServerName,
				CertificateAuthority: connection.CAFile, CertificateAuthorityData: connection.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{user: {ClientCertificate: pair, ClientKey: pair}},
		Contexts: map[string]*clientcmdapi.Context{
			context: {Cluster: cluster, AuthInfo: user, Namespace: "default"}},
		CurrentContext: context,
	}, path)
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}
