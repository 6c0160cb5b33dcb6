package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
)

const (
	host  = "127.0.0.1:8001"
	token = "0123456789abcdef0123456789abcdef"
)

// fixture is a server before an API server that answers with what it was sent.
type fixture struct {
	http.Handler
	asked [][]string
}

func newFixture(t *testing.T, upstream http.Handler) *fixture {
	t.Helper()
	s := httptest.NewServer(upstream)
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{}
	f.Handler, err = New(Config{Upstream: u, Transport: s.Client().Transport, Host: host, Token: token,
		Page: fstest.MapFS{"index.html": {Data: []byte("the page")}},
		Ask: func(_ context.Context, program string, args []string) ([]byte, error) {
			f.asked = append(f.asked, append([]string{program}, args...))
			if slices.Contains(args, "pods/bad") {
				return nil, errors.New("no such thing\x1b[31m")
			}
			return []byte(`{"well":true}`), nil
		}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) do(method, path string, body io.Reader, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, body)
	r.Host = host
	r.Header.Set("Authorization", "Bearer "+token)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

// TestDoor: who has no token, a wrong one, or another name for this server gets nothing of the cluster.
func TestDoor(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	f := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reached.Add(1) }))
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		code   int
	}{
		"good":        {"/api/v1/pods", nil, 200},
		"the page":    {"/", func(r *http.Request) { r.Header.Del("Authorization") }, 200},
		"no token":    {"/api/v1/pods", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"wrong token": {"/api/v1/pods", func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, 401},
		"token in the URL": {"/api/v1/pods?token=" + token,
			func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"other host":        {"/api/v1/pods", func(r *http.Request) { r.Host = "evil.example:8001" }, 421},
		"other port":        {"/", func(r *http.Request) { r.Host = "127.0.0.1:8002" }, 421},
		"explain, no token": {"/console/why?kind=pods&name=x", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"other path":        {"/metrics", nil, 404},
		"dots":              {"/api/../metrics", nil, 307},
		"encoded dots":      {"/api/%2e%2e/metrics", nil, 400},
		"encoded slash":     {"/api/v1/..%2f..%2fmetrics", nil, 400},
		"connect":           {"/api/v1/pods", func(r *http.Request) { r.Method = http.MethodConnect }, 405},
		"other method":      {"/api/v1/pods", func(r *http.Request) { r.Method = "PROPFIND" }, 405},
	} {
		before := reached.Load()
		w := f.do("GET", c.path, nil, c.change)
		if w.Code != c.code {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, c.code)
		}
		if got := reached.Load() - before; got != 0 && name != "good" {
			t.Errorf("%s: the request reached the API server", name)
		}
		if csp := w.Header().Get("Content-Security-Policy"); c.code != 421 && !strings.Contains(csp,
			"frame-ancestors 'none'") {
			t.Errorf("%s: policy %q", name, csp)
		}
	}
}

// TestProxy: what the browser sends reaches the API server without its own credentials and impersonation, and answers
// come back without what would steer the browser.
func TestProxy(t *testing.T) {
	t.Parallel()
	f := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Link", "<http://early>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Location", "http://elsewhere")
		w.Header().Set("WWW-Authenticate", "Basic")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Clear-Site-Data", "*")
		w.Header().Set("Refresh", "0;url=http://elsewhere")
		w.Header().Set("Link", "<http://elsewhere>; rel=preload")
		w.Header().Set("Content-Security-Policy", "default-src *")
		w.Header().Set("Warning", `299 - "old"`)
		fmt.Fprintf(w, "%s %s %s %v", r.Method, r.URL, body, r.Header)
	}))
	w := f.do("PATCH", "/api/v1/namespaces/a/pods/b?dryRun=All", strings.NewReader(`{"x":1}`), func(r *http.Request) {
		r.Header.Set("Content-Type", "application/merge-patch+json")
		r.Header.Set("Impersonate-User", "admin")
		r.Header.Set("Cookie", "c=d")
		r.Header.Set("Origin", "http://evil.example")
	})
	got := w.Body.String()
	if !strings.HasPrefix(got, `PATCH /api/v1/namespaces/a/pods/b?dryRun=All {"x":1}`) ||
		!strings.Contains(got, "application/merge-patch+json") {
		t.Error(got)
	}
	for _, secret := range []string{token, "Impersonate", "Cookie", "Origin"} {
		if strings.Contains(got, secret) {
			t.Errorf("%s reached the API server: %s", secret, got)
		}
	}
	h := w.Header()
	for _, name := range []string{"Set-Cookie", "Location", "WWW-Authenticate", "Access-Control-Allow-Origin",
		"Clear-Site-Data", "Refresh", "Link"} {
		if h.Get(name) != "" {
			t.Errorf("%s reached the browser: %s", name, h)
		}
	}
	if h.Get("Warning") == "" || h.Get("Cache-Control") != "no-store" || len(h["Content-Security-Policy"]) != 1 ||
		strings.Contains(h.Get("Content-Security-Policy"), "*") {
		t.Error(h)
	}
	big := f.do("POST", "/api/v1/namespaces", strings.NewReader(strings.Repeat("x", maxBody+1)), nil)
	if big.Code == http.StatusOK {
		t.Error("a body over the bound was passed on")
	}
}

// TestExplain: only names reach a program's command line.
func TestExplain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, http.NotFoundHandler())
	if w := f.do("GET", "/console/why?kind=deployments.apps&name=web&namespace=shop", nil, nil); w.Code != 200 ||
		w.Body.String() != `{"well":true}` {
		t.Error(w.Code, w.Body)
	}
	if got := fmt.Sprint(f.asked); got != "[[why deployments.apps/web -o json --namespace shop]]" {
		t.Error(got)
	}
	for _, bad := range []string{"kind=pods", "name=x", "kind=-o&name=x", "kind=pods&name=--kubeconfig%3D/etc/x",
		"kind=pods&name=a/b", "kind=pods&name=x&namespace=-A", "kind=pods&name=x%00", "kind=pods&name=" +
			strings.Repeat("x", 600), "kind=pods&name=a%20b"} {
		if w := f.do("GET", "/console/why?"+bad, nil, nil); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", bad, w.Code, w.Body)
		}
	}
	if len(f.asked) != 1 {
		t.Error(f.asked)
	}
	if w := f.do("GET", "/console/trace?kind=pods&name=bad", nil, nil); w.Code != http.StatusUnprocessableEntity ||
		strings.Contains(w.Body.String(), "\x1b") {
		t.Error(w.Code, w.Body)
	}
}

// TestStreams: the watches of a page come in one response, and end with it; what is no watch does not begin.
func TestStreams(t *testing.T) {
	t.Parallel()
	ended := make(chan string, 2)
	f := newFixture(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/secrets" {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `{"message":"no"}`)
			return
		}
		fmt.Fprintf(w, "{\"path\":%q}\n", r.URL.Path)
		w.(http.Flusher).Flush()
		if r.URL.Path == "/api/v1/nodes" {
			return
		}
		<-r.Context().Done()
		ended <- r.URL.Path
	}))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Host = host
		f.ServeHTTP(w, r)
	}))
	defer s.Close()
	do := func(method, path string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		response, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	stream := do("GET", "/console/stream")
	lines := bufio.NewScanner(stream.Body)
	lines.Scan()
	name := lines.Text()
	watch := func(id, path string) int {
		r := do("POST", "/console/watch?"+url.Values{"stream": {name}, "id": {id}, "path": {path}}.Encode())
		r.Body.Close()
		return r.StatusCode
	}
	for _, c := range []struct {
		id, path string
		code     int
	}{
		{"1", "/api/v1/pods?watch=1", 204}, {"2", "/api/v1/secrets?watch=1", 403}, {"x", "/api/v1/pods?watch=1", 400},
		{"3", "/api/v1/pods", 400}, {"3", "/metrics?watch=1", 400}, {"3", "http://elsewhere/api/v1/pods?watch=1", 400},
		{"3", "/api/../metrics?watch=1", 400},
	} {
		if got := watch(c.id, c.path); got != c.code {
			t.Errorf("%+v: %d", c, got)
		}
	}
	read := func(want string) {
		t.Helper()
		if lines.Scan(); lines.Text() != want {
			t.Errorf("%q, want %q", lines.Text(), want)
		}
	}
	read(`1 {"path":"/api/v1/pods"}`)
	if got := watch("4", "/api/v1/nodes?watch=1"); got != 204 {
		t.Error(got)
	}
	read(`4 {"path":"/api/v1/nodes"}`)
	read("4")
	stream.Body.Close()
	if got := <-ended; got != "/api/v1/pods" {
		t.Error(got)
	}
}
