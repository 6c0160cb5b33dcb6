package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// Core returns a client for the kinds that the cluster's command reads and writes, with this machine's identity in the
// cluster (plan.Config.Identity). Each call reads the kubeconfig and makes a client of its own, so a caller that asks
// often keeps the client.
func Core(c plan.Config) (*apiclient.Client, error) { return CoreAt(c, "") }

// CoreAt is Core with the API server of that URL, or that of the kubeconfig if it is "".
func CoreAt(c plan.Config, server string) (*apiclient.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags(server, c.Layout().Kubeconfig(c.Identity()))
	if err != nil {
		return nil, err
	}
	s, err := apiclient.NewScheme(
		apiclient.Only(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{}, &corev1.Pod{}, &corev1.PodList{},
			&corev1.Service{}, &corev1.ServiceList{},
			&corev1.Secret{}, &corev1.SecretList{}, &corev1.ConfigMap{}, &corev1.ConfigMapList{}),
		apiclient.Only(certificatesv1.SchemeGroupVersion, &certificatesv1.CertificateSigningRequest{},
			&certificatesv1.CertificateSigningRequestList{}))
	if err != nil {
		return nil, err
	}
	return apiclient.New(config, s)
}

// ThroughRestarts repeats do while connections break or writers conflict. do must be safe to repeat. One of several API
// servers may be restarted while the cluster comes up, and the others answer. Only ctx bounds the attempts
// (WhileAnswered).
func ThroughRestarts(ctx context.Context, do func() error) error {
	var last error
	err := host.Poll(ctx, 100*time.Millisecond, func() (bool, error) {
		last = do()
		if utilnet.IsConnectionReset(last) || utilnet.IsConnectionRefused(last) || utilnet.IsProbableEOF(last) ||
			apierrors.IsConflict(last) {
			return false, nil
		}
		return true, last
	})
	if err != nil && last != nil && !errors.Is(err, last) {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// AnswerPatience bounds WhileAnswered.
const AnswerPatience = time.Minute

// ErrNoAnswer is the cause of the end of a WhileAnswered.
var ErrNoAnswer = errors.New("the API server does not answer (bonsai status)")

// WhileAnswered returns a context for requests to the API server under the machine's lock. Without a bound, a command
// whose API server is gone would repeat them for ever (ThroughRestarts), and keep all others out.
func WhileAnswered(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, AnswerPatience, ErrNoAnswer)
}

// Timeout bounds one request to the API server. A user waits for the answer, and a server that takes longer has a
// problem.
const Timeout = 2 * time.Second

// waitTimeout bounds one of many requests of a wait. Nobody waits for a single one, and on a slow machine that starts
// everything at once, a server that is ready may take longer than Timeout.
const waitTimeout = 15 * time.Second

// AskReady asks the API server, by the address that users have, whether it is ready. The error says what is wrong.
func AskReady(ctx context.Context, c plan.Config) error {
	r, err := newReadiness(c, Timeout)
	if err != nil {
		return err
	}
	defer r.close()
	return r.ask(ctx, c.LocalServer())
}

// readiness asks API servers whether they are ready.
//
// It sends no credentials as long as everybody may read /readyz. A new API server answers 403 until it has made the
// role that permits that, which counts as not ready. Where the user's settings let nobody in without credentials (401),
// it asks with this machine's identity in the cluster (plan.Config.Identity).
type readiness struct {
	config  plan.Config
	timeout time.Duration // of one question
	client  *http.Client
	known   bool // whether client has the identity
}

// newReadiness makes a client that trusts the cluster's authority alone. timeout bounds one question.
func newReadiness(c plan.Config, timeout time.Duration) (*readiness, error) {
	ca, err := os.ReadFile(c.Layout().PKI("ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	r := &readiness{config: c, timeout: timeout}
	r.use(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12})
	return r, nil
}

func (r *readiness) use(config *tls.Config) {
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: r.timeout}
}

func (r *readiness) close() { r.client.CloseIdleConnections() }

// ask asks the API server with that URL.
func (r *readiness) ask(ctx context.Context, server string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return fmt.Errorf("the API server does not answer: %w", err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // read to its end, the connection serves again
	resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusOK:
		return nil
	case resp.StatusCode != http.StatusUnauthorized || r.known:
		return fmt.Errorf("the API server is not ready: %s says %s", req.URL, resp.Status)
	}
	identity, err := clientcmd.BuildConfigFromFlags(server, r.config.Layout().Kubeconfig(r.config.Identity()))
	if err != nil {
		return err
	}
	config, err := rest.TLSConfigFor(identity)
	if err != nil {
		return err
	}
	r.close()
	r.use(config)
	r.known = true
	return r.ask(ctx, server)
}

// WaitReady waits until the API server is ready.
func WaitReady(ctx context.Context, c plan.Config) error { return WaitReadyAt(ctx, c, c.LocalServer()) }

// WaitReadyAt waits until the API server with that URL is ready.
func WaitReadyAt(ctx context.Context, c plan.Config, server string) error {
	r, err := newReadiness(c, waitTimeout)
	if err != nil {
		return err
	}
	defer r.close()
	var last error
	err = host.Poll(ctx, 10*time.Millisecond, func() (bool, error) {
		last = r.ask(ctx, server)
		return last == nil, nil // not there yet; ctx bounds the wait
	})
	if err != nil {
		return fmt.Errorf("%w: %w", err, last)
	}
	return nil
}
