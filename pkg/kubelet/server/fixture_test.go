package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	remotecommandserver "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"bonsai/pkg/authorities"
	"bonsai/pkg/delegated"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/zpages"
)

// cri is a runtime's streaming server whose commands echo what they get.
type cri struct{ server streaming.Server }

func (c *cri) Exec(_ context.Context, id string, cmd []string, in io.Reader, out, errOut io.WriteCloser, tty bool,
	_ <-chan remotecommandserver.TerminalSize) error {
	fmt.Fprintf(out, "%s %v tty=%v ", id, cmd, tty)
	if in != nil {
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
	if errOut != nil {
		io.WriteString(errOut, "to stderr")
	}
	return nil
}

func (c *cri) Attach(ctx context.Context, id string, in io.Reader, out, errOut io.WriteCloser, tty bool,
	r <-chan remotecommandserver.TerminalSize) error {
	return c.Exec(ctx, id, []string{"attached"}, in, out, errOut, tty, r)
}

func (c *cri) PortForward(_ context.Context, _ string, port int32, s io.ReadWriteCloser) error {
	defer s.Close()
	_, err := fmt.Fprint(s, port)
	return err
}

// kubelet is the rest of the kubelet, hand made.
type kubelet struct {
	pods []*corev1.Pod
	cri  *cri
}

func (k *kubelet) Pods() []*corev1.Pod { return k.pods }

func (k *kubelet) RunningPods(context.Context) ([]*corev1.Pod, error) { return k.pods[:1], nil }

func (k *kubelet) Pod(ns, name string) (*corev1.Pod, bool) {
	for _, p := range k.pods {
		if p.Namespace == ns && p.Name == name {
			return p, true
		}
	}
	return nil, false
}

func (k *kubelet) Exec(_ context.Context, p *corev1.Pod, c string, cmd []string, s runtime.Streams) (*url.URL, error) {
	r, err := k.cri.server.GetExec(
		&runtimeapi.ExecRequest{ContainerId: p.Name + "/" + c, Cmd: cmd, Stdin: s.Stdin, Stdout: s.Stdout,
			Stderr: s.Stderr, Tty: s.TTY})
	if err != nil {
		return nil, err
	}
	return url.Parse(r.Url)
}

func (k *kubelet) Attach(_ context.Context, p *corev1.Pod, c string, s runtime.Streams) (*url.URL, error) {
	r, err := k.cri.server.GetAttach(
		&runtimeapi.AttachRequest{ContainerId: p.Name + "/" + c, Stdin: s.Stdin, Stdout: s.Stdout, Stderr: s.Stderr,
			Tty: s.TTY})
	if err != nil {
		return nil, err
	}
	return url.Parse(r.Url)
}

func (k *kubelet) PortForward(context.Context, *corev1.Pod, []int32) (*url.URL, error) {
	return nil, errors.New("no sandbox")
}

func (k *kubelet) Run(_ context.Context, p *corev1.Pod, c string, cmd []string) ([]byte, error) {
	return fmt.Appendf(nil, "%s %s %v", p.Name, c, cmd), nil
}

func (k *kubelet) Checkpoint(_ context.Context, p *corev1.Pod, c string, timeout time.Duration) (string, error) {
	if timeout == 0 {
		return "", errors.New("rpc error: code = Unimplemented desc = method CheckpointContainer not implemented")
	}
	return fmt.Sprintf("/checkpoints/%s-%s-%s.tar", p.Name, c, timeout), nil
}

func (k *kubelet) ContainerLogs(_ context.Context, p *corev1.Pod, c string, o *corev1.PodLogOptions, stdout,
	_ io.Writer) error {
	if o.Previous {
		return fmt.Errorf("previous terminated container %q in pod %q not found", c, p.Name)
	}
	_, err := fmt.Fprintf(stdout, "log of %s, tail %v\n", c, *o.TailLines)
	return err
}

// authority makes a CA, and certificates of it.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tpl, tpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func (a *authority) client(t *testing.T, name, group string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tpl := &x509.Certificate{SerialNumber: big.NewInt(2),
		Subject: pkix.Name{CommonName: name, Organization: []string{group}}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tpl, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

type fixture struct {
	url  string
	ca   *authority
	cert *x509.Certificate // of the server
}

// reviewer is the API server: "admin" may do everything with node n1, "viewer", whose token is "good", read its pods,
// and "reader", whose token is "reads", get everything.
type reviewer struct{}

func (reviewer) ReviewToken(_ context.Context, r *authnv1.TokenReview) (*authnv1.TokenReview, error) {
	r = r.DeepCopy()
	if name := map[string]string{"good": "viewer", "reads": "reader"}[r.Spec.Token]; name != "" {
		r.Status = authnv1.TokenReviewStatus{Authenticated: true, User: authnv1.UserInfo{Username: name}}
	}
	return r, nil
}

func (reviewer) ReviewAccess(_ context.Context, r *authzv1.SubjectAccessReview) (*authzv1.SubjectAccessReview, error) {
	r = r.DeepCopy()
	at := r.Spec.ResourceAttributes
	r.Status.Allowed = at.Resource == "nodes" && at.Name == "n1" &&
		(r.Spec.User == "admin" || r.Spec.User == "reader" && at.Verb == "get" ||
			r.Spec.User == "viewer" && at.Verb == "get" && at.Subresource == "pods")
	return r, nil
}

// start runs a whole server: certificates and tokens, authorization by review.
func start(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{ca: newAuthority(t)}
	stream := &cri{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := streaming.DefaultConfig
	cfg.BaseURL = &url.URL{Scheme: "http", Host: l.Addr().String()}
	if stream.server, err = streaming.NewServer(cfg, stream); err != nil {
		t.Fatal(err)
	}
	backend := &httptest.Server{Listener: l, Config: &http.Server{Handler: stream.server}}
	backend.Start()
	t.Cleanup(backend.Close)

	roots := &authorities.Held{}
	if err := roots.Set(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.ca.cert.Raw})); err != nil {
		t.Fatal(err)
	}
	cert, err := ServingCertificate(filepath.Join(t.TempDir(), "pki"), "node-1", []net.IP{net.ParseIP("127.0.0.1")},
		time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if f.cert, err = x509.ParseCertificate(cert.Certificate[0]); err != nil {
		t.Fatal(err)
	}
	logDir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(logDir, "x.log"), []byte("xlog"), 0o600),
		os.Symlink("/etc/passwd", filepath.Join(logDir, "evil"))); err != nil {
		t.Fatal(err)
	}
	k := &kubelet{cri: stream,
		pods: []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}},
			{ObjectMeta: metav1.ObjectMeta{Name: "q"}}}}
	cpu, mem := uint64(15e8), uint64(99)
	srv, err := New(Config{NodeName: "n1", Certificate: func() *tls.Certificate {
		return &cert
	}, Clients: authorities.Of(roots),
		Authenticator: delegated.Union{delegated.Certificates{Roots: roots},
			delegated.NewTokens(reviewer{}, time.Minute, time.Now)},
		Authorizer: delegated.NewReviews(reviewer{}, delegated.ReviewTTL{Allowed: time.Minute, Denied: time.Minute},
			time.Now), Pods: k, Runtime: k, Logs: k,
		Profiles: map[string]http.Handler{
			"/debug/pprof/": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprint(w, "a profile")
			})},
		LogDir: logDir, Configz: func() any {
			return map[string]int{"maxPods": 7}
		}, Pages: &zpages.Config{Component: "kubelet", Now: time.Now, Flags: map[string]string{"v": "2"}},
		Log: slog.New(slog.DiscardHandler),
		Stats: func(_ context.Context, few bool) (*statsapi.Summary, error) {
			at := metav1.NewTime(time.UnixMilli(1234))
			node := statsapi.NodeStats{NodeName: "n1", CPU: &statsapi.CPUStats{Time: at, UsageCoreNanoSeconds: &cpu}}
			if !few {
				node.Fs = &statsapi.FsStats{}
			}
			return &statsapi.Summary{Node: node,
				Pods: []statsapi.PodStats{{PodRef: statsapi.PodReference{Name: "p", Namespace: "ns"},
					Containers: []statsapi.ContainerStats{
						{Name: "c", Memory: &statsapi.MemoryStats{Time: at, WorkingSetBytes: &mem}}}}}}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- srv.Serve(ctx, front) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	f.url = "https://" + front.Addr().String()
	return f
}

func (f *fixture) client(certs ...tls.Certificate) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(f.cert)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certs},
		DisableKeepAlives: true}}
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func do(t *testing.T, c *http.Client, method, url, token string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
