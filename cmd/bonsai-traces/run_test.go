package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	authzv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/cmd/internal/daemon"
	"bonsai/pkg/traces"
)

const podUID = "0a1b2c3d-0000-4000-8000-0123456789ab"

// apiServer lets the user "viewer" get and list traces and pods in the namespace "a", and "other" traces alone. All but
// "other" may create spans.
func apiServer(t *testing.T) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(r.URL.Path, "/subjectaccessreviews") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		body, err := io.ReadAll(r.Body)
		envelope, review := runtime.Unknown{}, authzv1.SubjectAccessReview{}
		if err != nil || len(body) < 4 || envelope.Unmarshal(body[4:]) != nil || review.Unmarshal(envelope.Raw) != nil {
			t.Error("no review", err)
		}
		if review.Spec.User == "system:anonymous" {
			t.Error("the API server is asked what nobody may")
		}
		a := review.Spec.ResourceAttributes
		sends := a != nil && a.Group == "traces.bonsai.io" && a.Resource == "spans" && a.Verb == "create"
		review.Status.Allowed = sends && review.Spec.User != "other" ||
			(review.Spec.User == "viewer" || review.Spec.User == "other") && a != nil && a.Namespace == "a" &&
				(a.Group == "traces.bonsai.io" && a.Resource == "traces" ||
					a.Group == "" && a.Resource == "pods" && review.Spec.User == "viewer") &&
				(a.Verb == "get" || a.Verb == "list")
		review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SubjectAccessReview"
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(server.Close)
	return write(t, "kubeconfig", `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"`+
		server.URL+`"}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`)
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// proxy is the certificate of a front proxy, which is its own authority.
func proxy(t *testing.T) (tls.Certificate, string) { return certificate(t, "front-proxy-client") }

// certificate is that of a client, which is its own authority, and the path of that.
func certificate(t *testing.T, name string, groups ...string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: groups},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		write(t, "client.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
}

// freePort returns a port of loopback that nobody has.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// process is a bonsai-traces in this process.
type process struct {
	t      *testing.T
	base   string
	client *http.Client
	socket string
	stop   func()
}

// startTraces runs the command as a supervisor would, and waits until it is ready.
func startTraces(t *testing.T, dir, kubeconfig string, cert tls.Certificate, proxyCA string,
	more ...string) *process {
	t.Helper()
	port := freePort(t)
	p := &process{t: t, base: "https://127.0.0.1:" + strconv.Itoa(port),
		socket: filepath.Join(dir, "socket", "otlp.sock")}
	p.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{cert}}}}
	blocked := filepath.Join(dir, "n1", "otlp.sock") // by a pod of the node, which takes nothing from the others
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.run(append([]string{"--node-socket=n1=" + blocked, "--serving-socket=" + blocked, "--otlp-socket=" + p.socket,
		"--data-dir=" + filepath.Join(dir, "data"), "--max-bytes=1048576",
		"--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port), "--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig, "--authentication-skip-lookup",
		"--requestheader-client-ca-file=" + proxyCA, "--requestheader-allowed-names=front-proxy-client"}, more...))
	p.until("ready", func() bool {
		q, err := http.NewRequest(http.MethodGet, p.base+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("X-Remote-User", "viewer") // or the proxy would be a client itself
		r, err := p.client.Do(q)
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == 200
	})
	return p
}

// asProcess is the variable that makes the test's own program a bonsai-traces.
const asProcess = "BONSAI_TEST_AS_TRACES"

// TestMain is the command itself in a process that a test has started as one (run).
func TestMain(m *testing.M) {
	if os.Getenv(asProcess) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// run runs the command, as it is compiled into the test, until stop, in a process of its own: the log of client
// libraries is the process's.
func (p *process) run(args []string) {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asProcess+"=1")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself, which Wait tells
		if err := cmd.Wait(); err != nil {
			p.t.Errorf("bonsai-traces ended with %v", err)
		}
	})
	p.t.Cleanup(p.stop)
}

func (p *process) until(what string, ok func() bool) {
	p.t.Helper()
	late, again := time.After(30*time.Second), time.NewTicker(20*time.Millisecond)
	defer again.Stop()
	for !ok() {
		select {
		case <-late:
			p.t.Fatal("never: " + what)
		case <-again.C:
		}
	}
}

// get asks as a user whom the front proxy names.
func (p *process) get(user, path string) (int, string) {
	p.t.Helper()
	r, err := http.NewRequest(http.MethodGet, p.base+path, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if user != "" {
		r.Header.Set("X-Remote-User", user)
	}
	resp, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// send sends one span of a pod of the namespace "a".
func (p *process) send() {
	p.t.Helper()
	if err := p.export(); err != nil {
		p.t.Fatal(err)
	}
}

// export is send for a process that may refuse the span.
func (p *process) export() error {
	p.t.Helper()
	conn, err := grpc.NewClient("unix://"+p.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	id, _ := traces.TraceOf(podUID)
	span := &trace.Span{TraceId: id[:], SpanId: []byte("spanspan"), Name: "kubelet.sandbox", StartTimeUnixNano: 1,
		EndTimeUnixNano: 2}
	for k, v := range map[string]string{"kind": "Pod", "resource": "pods", "namespace": "a", "name": "web",
		"uid": podUID} {
		span.Attributes = append(span.Attributes, &common.KeyValue{Key: "bonsai.object." + k,
			Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: v}}})
	}
	scopes := []*trace.ScopeSpans{{Spans: []*trace.Span{span}}}
	_, err = otlp.NewTraceServiceClient(conn).Export(p.t.Context(), &otlp.ExportTraceServiceRequest{
		ResourceSpans: []*trace.ResourceSpans{{ScopeSpans: scopes}}})
	return err
}

// TestRun: what comes in by the socket is answered to those whom the API server lets read it, also after a restart, and
// is shown to nobody else.
func TestRun(t *testing.T) {
	t.Parallel()
	dir, kubeconfig := t.TempDir(), apiServer(t)
	cert, ca := proxy(t)
	const group = "/apis/traces.bonsai.io/v1alpha1"
	p := startTraces(t, dir, kubeconfig, cert, ca)
	p.send()
	for range 2 {
		for _, c := range []struct {
			user, path string
			code       int
			body       string
		}{
			{"viewer", group + "/namespaces/a/traces/" + podUID, 200, `"name":"kubelet.sandbox"`},
			{"viewer", group + "/namespaces/a/traces", 200, `"spanCount":1`},
			{"viewer", group + "/namespaces/b/traces", 403, `traces.traces.bonsai.io is forbidden: User \"viewer\" cannot ` +
				`list resource \"traces\" in API group \"traces.bonsai.io\" in the namespace \"b\"`},
			{"viewer", group + "/traces", 403, `at the cluster scope`},
			{"viewer", group + "/clustertraces/x", 403, `clustertraces.traces.bonsai.io \"x\" is forbidden`},
			{"viewer", "/metrics", 403, "forbidden"},
			{"other", group + "/namespaces/a/traces/" + podUID, 403, "the trace is for those who may get pods"},
			{"other", group + "/namespaces/a/traces", 200, `"items":[]`},
			{"other", group + "/clustertraces", 403, "forbidden"},
			{"", group + "/namespaces/a/traces", 403, `User \"system:anonymous\"`},
			{"", "/livez", 200, "ok"},
		} {
			if code, body := p.get(c.user, c.path); code != c.code || !strings.Contains(body, c.body) {
				t.Errorf("%q gets %s: %d %s", c.user, c.path, code, body)
			}
		}
		p.stop()
		p = startTraces(t, dir, kubeconfig, cert, ca)
	}
	other, _ := proxy(t)
	p.client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{other}
	if code, body := p.get("viewer", group+"/namespaces/a/traces"); code != 401 {
		t.Errorf("by a proxy of another authority: %d %s", code, body)
	}
}

// forwardAs runs a process on another machine, whose spans go to p as the user of a certificate.
func (p *process) forwardAs(cert tls.Certificate) *process {
	p.t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		p.t.Fatal(err)
	}
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	f := &process{t: p.t, socket: filepath.Join(p.t.TempDir(), "run", "otlp.sock")}
	f.run([]string{"--otlp-socket=" + f.socket, "--secure-port=0", "--forward-kubeconfig=" + write(p.t, "kubeconfig",
		`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"insecure-skip-tls-verify":true,"server":"`+
			p.base+`"}}],"users":[{"name":"u","user":{"client-certificate-data":"`+
			encode("CERTIFICATE", cert.Certificate[0])+`","client-key-data":"`+encode("PRIVATE KEY", key)+
			`"}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`)})
	p.until("the socket", func() bool { _, err := os.Stat(f.socket); return err == nil })
	return f
}

// TestForward: spans of another machine come over TLS, with a certificate of the cluster's authority, and are that
// node's. Who is no node or has no right sends none, and nobody without a certificate.
func TestForward(t *testing.T) {
	t.Parallel()
	front, proxyCA := proxy(t)
	for name, c := range map[string]struct {
		user, group string
		trusted     bool
		want        codes.Code
		instance    string
	}{
		"a node":               {"system:node:far", "system:nodes", true, codes.OK, `"instance":"far"`},
		"a control plane":      {"bonsai:traces", "", true, codes.OK, ""},
		"an administrator":     {"admin", "system:masters", true, codes.Unavailable, ""},
		"a node by name alone": {"system:node:far", "", true, codes.Unavailable, ""},
		"without the right":    {"other", "system:nodes", true, codes.Unavailable, ""},
		"another authority":    {"system:node:far", "system:nodes", false, codes.Unavailable, ""},
	} {
		cert, ca := certificate(t, c.user, c.group)
		if !c.trusted {
			_, ca = certificate(t, c.user, c.group)
		}
		p := startTraces(t, t.TempDir(), apiServer(t), front, proxyCA, "--client-ca-file="+ca)
		f := p.forwardAs(cert)
		if err := f.export(); status.Code(err) != c.want {
			t.Errorf("%s: %v", name, err)
		}
		code, body := p.get("viewer", "/apis/traces.bonsai.io/v1alpha1/namespaces/a/traces/"+podUID)
		if found := code == 200; found != (c.want == codes.OK) || !strings.Contains(body, c.instance) {
			t.Errorf("%s: %d %s", name, code, body)
		}
		f.stop()
		p.stop()
	}
}

// TestOptions: what is wrong with flags is said at once, by their names.
func TestOptions(t *testing.T) {
	t.Parallel()
	cmd := newCommand()
	cmd.SetArgs([]string{"--max-bytes=1", "--max-spans-per-object=1", "--secure-port=-1"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	for _, flag := range []string{"--otlp-socket", "--data-dir", "--max-bytes 1 ", "--max-spans-per-object",
		"--secure-port"} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is not in %v", flag, err)
		}
	}
	if err := run(t.Context(), &options{socket: "/proc/none/s", dataDir: t.TempDir(), maxBytes: leastBytes,
		maxSpansPerObject: 10}, daemon.NewPages(component, cmd.Flags()), slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "socket") {
		t.Error(err)
	}
}
