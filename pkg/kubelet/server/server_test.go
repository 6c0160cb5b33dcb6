package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

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
			"Forbidden (user=viewer, verb=get, resource=nodes, subresource(s)=[healthz proxy])"},
		{nobody, "POST", "/run/ns/p/c?cmd=id", "good", 403, "verb=create, resource=nodes, subresource(s)=[proxy]"},
		{admin, "GET", "/healthz", "", 200, "ok"},
		{admin, "GET", "/healthz/ping", "", 200, "ok"},
		{admin, "GET", "/healthz/syncloop", "", 200, "ok"},
		{admin, "GET", "/healthz?verbose", "", 200, "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n"},
		{nobody, "GET", "/metrics/slis", "good", 403,
			"Forbidden (user=viewer, verb=get, resource=nodes, subresource(s)=[metrics])"},
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
			"Forbidden (user=viewer, verb=create, resource=nodes, subresource(s)=[checkpoint])"},
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
		{nobody, "GET", "/flagz", "good", 403, "Forbidden (user=viewer, verb=get, resource=nodes, subresource(s)=[configz])"},
		{admin, "GET", "/logs/x.log", "", 200, "xlog"},
		{admin, "GET", "/logs/evil", "", 500, ""},
		{nobody, "GET", "/debug/pprof/heap", "", 401, "Unauthorized"},
		{stranger, "GET", "/debug/pprof/heap", "", 401, "Unauthorized"},
		{nobody, "GET", "/debug/pprof/heap", "good", 403,
			"Forbidden (user=viewer, verb=get, resource=nodes, subresource(s)=[proxy])"},
		{nobody, "GET", "/metrics/../debug/pprof/heap", "good", 403,
			"Forbidden (user=viewer, verb=get, resource=nodes, subresource(s)=["},
		{admin, "GET", "/debug/pprof/heap", "", 200, "a profile"},
		{admin, "GET", "/nothing", "", 404, ""},
	} {
		code, body := do(t, tc.c, tc.method, f.url+tc.path, tc.token)
		if code != tc.code || !strings.Contains(body, tc.body) || strings.Contains(body, "root:") {
			t.Errorf("%s %s: %d %q, want %d %q", tc.method, tc.path, code, body, tc.code, tc.body)
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
