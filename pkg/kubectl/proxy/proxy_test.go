package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"bonsai/pkg/kubectl/cli"
)

// apiServer tells what reached it.
func apiServer(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func defaults(t *testing.T, flags ...string) *Options {
	t.Helper()
	cmd := NewCommand(&cli.Factory{}, cli.IOStreams{})
	if err := cmd.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	o := &Options{IOStreams: cli.IOStreams{Out: io.Discard, ErrOut: io.Discard}}
	get := func(name string) string { return cmd.Flags().Lookup(name).Value.String() }
	o.prefix, o.www, o.wwwPrefix, o.socket, o.address = slashed(get("api-prefix")), get("www"),
		slashed(get("www-prefix")), get("unix-socket"), get("address")
	o.disableFilter = get("disable-filter") == "true"
	o.filter = filterFlags{get("accept-hosts"), get("accept-paths"), get("reject-paths"), get("reject-methods")}
	return o
}

func TestRequestsAreFilteredAndForwarded(t *testing.T) {
	t.Parallel()
	files := t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "a.txt"), []byte("file"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := apiServer(t)
	exec := "/api/v1/namespaces/default/pods/p/exec"
	for _, c := range []struct {
		flags              []string
		method, host, path string
		code               int
		body               string
	}{
		{nil, "GET", "localhost:8001", "/api/v1/pods", 200, "GET /api/v1/pods Bearer secret"},
		{nil, "GET", "[::1]:8001", "/healthz", 200, "GET /healthz Bearer secret"},
		{nil, "GET", "evil.example:8001", "/api", 403, "Forbidden"},
		{nil, "GET", "localhost.evil.example", "/api", 403, "Forbidden"},
		{nil, "POST", "127.0.0.1", exec, 403, "Forbidden"},
		{[]string{"--reject-methods=POST,PUT"}, "PUT", "localhost", "/api/v1/pods", 403, "Forbidden"},
		{[]string{"--accept-paths=^/version$"}, "GET", "localhost", "/api", 403, "Forbidden"},
		{[]string{"--disable-filter"}, "POST", "evil.example", exec, 200, "POST " + exec + " Bearer secret"},
		{[]string{"--api-prefix=/k8s"}, "GET", "localhost", "/k8s/api", 200, "GET /api Bearer secret"},
		{[]string{"--api-prefix=/k8s"}, "GET", "localhost", "/api", 404, "404 page not found"},
		{[]string{"--www=" + files}, "GET", "localhost", "/static/a.txt", 200, "file"},
	} {
		o := defaults(t, c.flags...)
		o.config = &rest.Config{Host: server, BearerToken: "secret"}
		h, err := o.newHandler()
		if err != nil {
			t.Fatal(err)
		}
		w, r := httptest.NewRecorder(), httptest.NewRequest(c.method, c.path, nil)
		r.Host = c.host
		r.Header.Set("Authorization", "Bearer of a web page")
		h.ServeHTTP(w, r)
		if got := strings.TrimSpace(w.Body.String()); w.Code != c.code || got != c.body {
			t.Errorf("%v %s %s%s: %d %q, not %d %q", c.flags, c.method, c.host, c.path, w.Code, got, c.code, c.body)
		}
	}
}

func TestBadFilter(t *testing.T) {
	t.Parallel()
	o := defaults(t, "--accept-paths=(")
	o.config = &rest.Config{Host: "http://localhost:1"}
	if _, err := o.newHandler(); err == nil || !strings.Contains(err.Error(), "--accept-paths") {
		t.Errorf("got %v", err)
	}
}

func TestServesUntilTheContextEnds(t *testing.T) {
	t.Parallel()
	for _, flags := range [][]string{nil, {"--unix-socket=" + filepath.Join(t.TempDir(), "proxy.sock")}} {
		o := defaults(t, flags...)
		o.config = &rest.Config{Host: apiServer(t)}
		in, out := io.Pipe()
		o.Out = out
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx) }()
		line, err := bufio.NewReader(in).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		address, ok := strings.CutPrefix(strings.TrimSpace(line), "Starting to serve on ")
		if !ok {
			t.Fatalf("said %q", line)
		}
		network := "tcp"
		if o.socket != "" {
			network = "unix"
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, address)
			}}}
		resp, err := client.Get("http://localhost/api")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !bytes.HasPrefix(body, []byte("GET /api")) {
			t.Errorf("%s: %q, %v", network, body, err)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: ended with %v", network, err)
		}
	}
}
