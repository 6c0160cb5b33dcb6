package server

import (
	"bytes"
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
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
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

func (k *kubelet) Pods() []*corev1.Pod                                { return k.pods }
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

func TestAPI(t *testing.T) {
	t.Parallel()
	f := start(t)
	admin, nobody := f.client(f.ca.client(t, "admin", "system:masters")), f.client()
	stranger := f.client(newAuthority(t).client(t, "admin", "system:masters"))
	for _, tc := range []struct {
		c                   *http.Client
		method, path, token string
		code                int
		body                string
	}{
		{nobody, "GET", "/pods", "", 401, "Unauthorized"},
		{nobody, "GET", "/healthz", "bad", 401, "Unauthorized"},
		{stranger, "GET", "/pods", "", 401, "Unauthorized"},
		{nobody, "GET", "/pods", "good", 200, `"kind":"PodList"`},
		{nobody, "GET", "/healthz", "good", 403,
			"Forbidden (user=viewer, verb=get, resource=nodes, subresource=proxy)"},
		{nobody, "POST", "/run/ns/p/c?cmd=id", "good", 403, "verb=create, resource=nodes, subresource=proxy"},
		{admin, "GET", "/healthz", "", 200, "ok"},
		{admin, "GET", "/healthz/ping", "", 200, "ok"},
		{admin, "GET", "/healthz/syncloop", "", 200, "ok"},
		{admin, "GET", "/healthz?verbose", "", 200, "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n"},
		{nobody, "GET", "/metrics/slis", "good", 403,
			"Forbidden (user=viewer, verb=get, resource=nodes, subresource=metrics)"},
		{admin, "GET", "/metrics/slis", "", 200, `kubernetes_healthcheck{name="syncloop",type="healthz"} 1`},
		{admin, "GET", "/pods/", "", 200, `"name":"q"`},
		{admin, "GET", "/runningpods/", "", 200, `"name":"p"`},
		{admin, "GET", "/containerLogs/ns/p/c?tailLines=3", "", 200, "log of c, tail 3\n"},
		{admin, "GET", "/containerLogs/ns/p/c?previous=true", "", 400,
			`previous terminated container "c" in pod "p" not found`},
		{admin, "GET", "/containerLogs/ns/p/x", "", 404, `container "x" not found in pod "p"`},
		{admin, "GET", "/containerLogs/ns/none/c", "", 404, `pod "none" does not exist`},
		{admin, "GET", "/containerLogs/ns/p/c?tailLines=-1", "", 422, "tailLines"},
		{admin, "POST", "/run/ns/p/c?cmd=id&cmd=-u", "", 200, "p c [id -u]"},
		{admin, "POST", "/run/ns/p/u/c?cmd=id", "", 200, "p c [id]"},
		{admin, "POST", "/run/ns/p/other/c?cmd=id", "", 404, "pod does not exist"},
		{admin, "POST", "/exec/ns/p/c?command=id", "", 400, "you must specify at least 1 of stdin, stdout, stderr"},
		{admin, "POST", "/exec/ns/p/c?output=1", "", 400, "command"},
		{admin, "POST", "/exec/ns/p/c?output=1&command=id", "", 400, "pgrade"},
		{admin, "POST", "/exec/ns/p/x?output=1&command=id", "", 404, "container not found"},
		{admin, "POST", "/portForward/ns/p", "", 500, "no sandbox"},
		{admin, "POST", "/portForward/ns/p?port=70000", "", 400, "invalid port"},
		{nobody, "POST", "/checkpoint/ns/p/c", "good", 403,
			"Forbidden (user=viewer, verb=create, resource=nodes, subresource=checkpoint)"},
		{admin, "POST", "/checkpoint/ns/p/c", "", 500,
			"checkpointing of ns/p/c failed (rpc error: code = Unimplemented desc = method CheckpointContainer not implemented)"},
		{admin, "POST", "/checkpoint/ns/p/c?timeout=7", "", 200, `{"items":["/checkpoints/p-c-7s.tar"]}`},
		{admin, "POST", "/checkpoint/ns/p/c?timeout=99999999", "", 200, "p-c-1h0m0s.tar"},
		{admin, "POST", "/checkpoint/ns/p/c?timeout=-1", "", 400, "cannot parse value of timeout parameter"},
		{admin, "POST", "/checkpoint/ns/p/x", "", 404, "container x does not exist"},
		{admin, "POST", "/checkpoint/ns/none/c", "", 404, "pod does not exist"},
		{admin, "GET", "/checkpoint/ns/p/c", "", 405, ""},
		{admin, "GET", "/stats/summary", "", 200,
			`"nodeName":"n1","startTime":null,"cpu":{"time":"1970-01-01T00:00:01Z","usageCoreNanoSeconds":1500000000},"fs":`},
		{admin, "GET", "/stats/summary?only_cpu_and_memory=true", "", 200, `"usageCoreNanoSeconds":1500000000}}`},
		{admin, "GET", "/metrics/resource", "", 200, "node_cpu_usage_seconds_total 1.5 1234"},
		{admin, "GET", "/configz", "", 200, `{"kubeletconfig":{"maxPods":7}}`},
		{admin, "GET", "/statusz", "", 200, "kubelet statusz"},
		{admin, "GET", "/statusz", "", 200, "Paths: /configz /flagz /healthz /metrics /pods /statusz\n"},
		{admin, "GET", "/flagz", "", 200, "\nv: 2\n"},
		{nobody, "GET", "/flagz", "", 401, "Unauthorized"},
		{nobody, "GET", "/flagz", "good", 403, "Forbidden (user=viewer, verb=get, resource=nodes, subresource=proxy)"},
		{admin, "GET", "/logs/x.log", "", 200, "xlog"},
		{admin, "GET", "/logs/evil", "", 500, ""},
		{nobody, "GET", "/debug/pprof/heap", "", 401, "Unauthorized"},
		{stranger, "GET", "/debug/pprof/heap", "", 401, "Unauthorized"},
		{nobody, "GET", "/debug/pprof/heap", "good", 403,
			"Forbidden (user=viewer, verb=get, resource=nodes, subresource=proxy)"},
		{nobody, "GET", "/metrics/../debug/pprof/heap", "good", 403,
			"Forbidden (user=viewer, verb=get, resource=nodes, subresource="},
		{admin, "GET", "/debug/pprof/heap", "", 200, "a profile"},
		{admin, "GET", "/nothing", "", 404, ""},
	} {
		code, body := do(t, tc.c, tc.method, f.url+tc.path, tc.token)
		if code != tc.code || !strings.Contains(body, tc.body) || strings.Contains(body, "root:") {
			t.Errorf("%s %s: %d %q, want %d %q", tc.method, tc.path, code, body, tc.code, tc.body)
		}
	}
}

func TestExecAndAttachOverSPDY(t *testing.T) {
	t.Parallel()
	f := start(t)
	cert := f.ca.client(t, "admin", "g")
	keyDER, err := x509.MarshalECPrivateKey(cert.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	cfg := &rest.Config{Host: f.url,
		TLSClientConfig: rest.TLSClientConfig{CAData: pemOf("CERTIFICATE", f.cert.Raw),
			CertData: pemOf("CERTIFICATE", cert.Certificate[0]), KeyData: pemOf("EC PRIVATE KEY", keyDER)}}
	for path, want := range map[string]string{"/exec/ns/p/c?command=cat&command=-&": "p/c [cat -] tty=false hello",
		"/attach/ns/p/u/c?": "p/c [attached] tty=false hello"} {
		u, err := url.Parse(f.url + path + "input=1&output=1&error=1")
		if err != nil {
			t.Fatal(err)
		}
		ex, err := remotecommand.NewSPDYExecutor(cfg, "POST", u)
		if err != nil {
			t.Fatal(err)
		}
		var out, errOut bytes.Buffer
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		err = ex.StreamWithContext(ctx,
			remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &errOut})
		cancel()
		if err != nil || out.String() != want || errOut.String() != "to stderr" {
			t.Errorf("%s: %q %q %v", path, out.String(), errOut.String(), err)
		}
	}
}

func TestSubresources(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/stats/summary": "stats", "/metrics": "metrics",
		"/metrics/resource": "metrics", "/metrics/cadvisor": "metrics", "/metrics/probes": "metrics",
		"/metrics/slis": "metrics", "/metricsx": "proxy", "/logs/": "log", "/pods": "pods proxy",
		"/runningpods/": "pods proxy", "/exec/a/b/c": "proxy",
		"/healthz": "healthz proxy", "/configz": "configz proxy", "/flagz": "configz proxy",
		"/statusz": "statusz proxy", "/checkpoint/a/b/c": "checkpoint", "/containerLogs/a/b/c": "proxy",
		"/debug/pprof/heap": "proxy", "/": "proxy"} {
		if got := strings.Join(subresources(path), " "); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestReadersCannotExec: who may only get nodes/proxy gets no process and no connection into a pod, by whatever method
// and upgrade (the WebSocket of exec is a GET, as kubelet-authn-authz says of verbs).
func TestReadersCannotExec(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, path := range []string{"/exec/ns/p/c?output=1&command=id", "/exec/ns/p/u/c?output=1&command=id",
		"/attach/ns/p/c?output=1",
		"/attach/ns/p/u/c?output=1", "/portForward/ns/p?port=80", "/portForward/ns/p/u?port=80", "/run/ns/p/c?cmd=id",
		"/%65xec/ns/p/c?output=1&command=id"} {
		for _, method := range []string{"GET", "HEAD", "OPTIONS", "CONNECT", "BREW"} {
			for _, upgrade := range []string{"", "websocket", "SPDY/3.1"} {
				if code, body := upgraded(t, f, method, f.url+path,
					upgrade); code != http.StatusForbidden ||
					method != "HEAD" && !strings.Contains(body, "verb=create, resource=nodes, subresource=proxy") {
					t.Errorf("%s %s, upgrade %q: %d %q", method, path, upgrade, code, body)
				}
			}
		}
	}
	if code, body := upgraded(t, f, "GET", f.url+"/containerLogs/ns/p/c?tailLines=1", ""); code != http.StatusOK {
		t.Errorf("reading: %d %s", code, body)
	}
	if code, body := upgraded(t, f, "GET", f.url+"/containerLogs/ns/p/c?tailLines=1",
		"websocket"); code != http.StatusForbidden {
		t.Errorf("an upgrade: %d %s", code, body)
	}
}

// upgraded sends a request of "reader", who may get everything of the node.
func upgraded(t *testing.T, f *fixture, method, url, protocol string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer reads")
	if protocol != "" {
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", protocol)
	}
	resp, err := f.client().Do(req)
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

func TestLogOptions(t *testing.T) {
	t.Parallel()
	q, _ := url.ParseQuery("follow=true&timestamps=1&previous=False&tailLines=0&sinceSeconds=5&limitBytes=9&sinceTime=2026-01-02T03:04:05Z&stream=Stderr")
	o, err := logOptions(q)
	if err != nil || !o.Follow || !o.Timestamps || o.Previous || *o.TailLines != 0 || *o.SinceSeconds != 5 ||
		*o.LimitBytes != 9 || o.SinceTime.Year() != 2026 || *o.Stream != "Stderr" {
		t.Errorf("%+v %v", o, err)
	}
	for _, bad := range []string{"sinceSeconds=0", "limitBytes=0", "tailLines=x", "sinceTime=yesterday", "stream=x"} {
		q, _ := url.ParseQuery(bad)
		if _, err := logOptions(q); err == nil {
			t.Error(bad, "accepted")
		}
	}
}

func TestServingCertificateIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := ServingCertificate(dir, "h", nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b, err := ServingCertificate(dir, "h", nil, time.Now())
	if err != nil || !bytes.Equal(a.Certificate[0], b.Certificate[0]) {
		t.Error("recreated:", err)
	}
	c, err := ServingCertificate(dir, "h", nil, time.Now().AddDate(2, 0, 0))
	if err != nil || bytes.Equal(a.Certificate[0], c.Certificate[0]) {
		t.Error("an ended certificate was kept:", err)
	}
	if info, err := os.Stat(filepath.Join(dir, "kubelet.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Error("the key's mode:", info.Mode(), err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("an empty configuration")
	}
}

// A kubelet whose runtime does not answer says which check failed, and counts it.
func TestSick(t *testing.T) {
	t.Parallel()
	s := &Server{cfg: Config{Healthy: func() error { return errors.New("sick") }, Log: slog.New(slog.DiscardHandler)}}
	h, err := s.routes()
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if code, body := get("/healthz"); code != 500 || !strings.Contains(body, "[-]syncloop failed") {
		t.Error(code, body)
	}
	if code, body := get("/healthz/ping"); code != 200 || body != "ok" {
		t.Error(code, body)
	}
	if _, body := get("/metrics/slis"); !strings.Contains(body,
		`kubernetes_healthchecks_total{name="syncloop",status="error",type="healthz"} 1`) {
		t.Error(body)
	}
}

// A client with several certificates is told which authority's the kubelet knows.
func TestNamesTheClientAuthority(t *testing.T) {
	t.Parallel()
	f := start(t)
	var asked [][]byte
	config := &tls.Config{InsecureSkipVerify: true,
		GetClientCertificate: func(i *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = i.AcceptableCAs
			return &tls.Certificate{}, nil
		}}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
	if code, body := do(t, c, "GET", f.url+"/pods", ""); code != http.StatusUnauthorized {
		t.Errorf("%d %s", code, body)
	}
	if len(asked) != 1 || !bytes.Equal(asked[0], f.ca.cert.RawSubject) {
		t.Errorf("asked for certificates of %q, not of %q alone", asked, f.ca.cert.RawSubject)
	}
}

// timed notes until when the answer must be written.
type timed struct {
	*httptest.ResponseRecorder
	until []time.Time
}

func (w *timed) SetWriteDeadline(t time.Time) error { w.until = append(w.until, t); return nil }

// A log is as long as it is: no time is set for all of it.
func TestLongLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "long.log"), []byte("line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	if err := (&Server{cfg: Config{LogDir: dir}}).debugging(mux); err != nil {
		t.Fatal(err)
	}
	w := &timed{ResponseRecorder: httptest.NewRecorder()}
	mux.ServeHTTP(w, httptest.NewRequest("GET", "/logs/long.log", nil))
	if w.Code != http.StatusOK || w.Body.String() != "line\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	if len(w.until) == 0 || !w.until[0].IsZero() {
		t.Errorf("it must be written until %v", w.until)
	}
}

// A pod with a host path may make a pipe among the logs: it is refused at once.
func TestLogsOpenNoPipes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mkfifo(filepath.Join(dir, "pipe.log"), 0o600); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	if err := (&Server{cfg: Config{LogDir: dir}}).debugging(mux); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/logs/pipe.log": http.StatusForbidden, "/logs/": http.StatusOK,
		"/logs/none": http.StatusNotFound} {
		w := &timed{ResponseRecorder: httptest.NewRecorder()}
		mux.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s: %d, want %d: %s", path, w.Code, want, w.Body)
		}
	}
}

// What is off is refused with 405, whatever the method; the rest stays.
func TestNoDebugging(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	if err := (&Server{cfg: Config{NoDebugging: true, LogDir: t.TempDir()}}).debugging(mux); err != nil {
		t.Fatal(err)
	}
	noLogs := http.NewServeMux()
	if err := (&Server{}).debugging(noLogs); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mux          *http.ServeMux
		method, path string
		want         string
	}{
		{mux, "POST", "/exec/ns/p/c", "Debug endpoints are disabled.\n"},
		{mux, "GET", "/containerLogs/ns/p/c", "Debug endpoints are disabled.\n"},
		{mux, "POST", "/run/ns/p/c", "Debug endpoints are disabled.\n"},
		{mux, "GET", "/logs/x", "Debug endpoints are disabled.\n"},
		{mux, "POST", "/portForward/ns/p", "Debug endpoints are disabled.\n"},
		{noLogs, "GET", "/logs/x", "logs endpoint is disabled.\n"},
		{mux, "GET", "/debug/pprof/heap", "Debug endpoints are disabled.\n"},
		{noLogs, "GET", "/debug/pprof/heap", "profiling endpoint is disabled.\n"},
	} {
		w := httptest.NewRecorder()
		c.mux.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		if w.Code != http.StatusMethodNotAllowed || w.Body.String() != c.want {
			t.Errorf("%s %s: %d %q", c.method, c.path, w.Code, w.Body)
		}
	}
}
