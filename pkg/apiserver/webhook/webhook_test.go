package webhook_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bonsai/pkg/apiserver/webhook"
	"bonsai/pkg/apiserver/webhook/webhooktest"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const limit = 1 << 20

// What a webhook is sent, and by which name it is called.
func TestCall(t *testing.T) {
	t.Parallel()
	var got *http.Request
	var body []byte
	s := webhooktest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		io.WriteString(w, "answer") //nolint:errcheck // the client sees it
	}), "hook.ns.svc")
	c := webhook.New(webhook.Config{Resolver: webhooktest.Resolve{s.Addr()}})
	for _, x := range []struct {
		name       string
		to         webhook.Hook
		host, path string
		timeout    time.Duration
	}{
		{"service", webhook.Hook{Service: &webhook.Service{Namespace: "ns", Name: "hook", Path: "/a/b"}},
			"hook.ns.svc:443", "/a/b?timeout=10s", 10 * time.Second},
		{"port", webhook.Hook{Service: &webhook.Service{Namespace: "ns", Name: "hook", Port: 8443}}, "hook.ns.svc:8443",
			"/?timeout=1s", time.Second},
		{"path", webhook.Hook{Service: &webhook.Service{Namespace: "ns", Name: "hook", Path: "/a//b/../c/"}},
			"hook.ns.svc:443", "/a/c?timeout=30s", 30 * time.Second},
		{"URL", webhook.Hook{URL: s.URL + "/x"}, s.Addr(), "/x?timeout=1m30s", 90 * time.Second},
	} {
		x.to.CABundle = s.CABundle
		answer, err := c.Call(t.Context(), &x.to, []byte(`{"a":1}`), x.timeout, limit)
		if err != nil || string(answer) != "answer" {
			t.Fatalf("%s: %q, %v", x.name, answer, err)
		}
		if got.Method != http.MethodPost || got.Host != x.host || got.URL.String() != x.path ||
			string(body) != `{"a":1}` || got.Proto != "HTTP/1.1" {
			t.Errorf("%s: %s %s at %s with %s over %s", x.name, got.Method, got.URL, got.Host, body, got.Proto)
		}
		if h := got.Header; h.Get("Content-Type") != "application/json" || h.Get("Accept") != "application/json, */*" ||
			h.Get("User-Agent") != "kube-apiserver-admission" || h.Get("Authorization") != "" {
			t.Errorf("%s: %v", x.name, h)
		}
	}
}

// A webhook that is not where or who it should be, or says something else than an answer.
func TestRefusals(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int32
	other := webhooktest.NewServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	s := webhooktest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) //nolint:errcheck // the server watches the connection once the body is read
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/text":
			http.Error(w, "went wrong", http.StatusInternalServerError)
		case "/json":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"x":1}`) //nolint:errcheck // the client sees it
		case "/status":
			w.WriteHeader(http.StatusForbidden)
			//nolint:errcheck // the client sees it
			io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"Forbidden","code":403}`)
		case "/huge":
			w.Write(make([]byte, limit+1)) //nolint:errcheck // the client ends it
		case "/bomb":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 64 {
				z.Write(make([]byte, limit)) //nolint:errcheck // the client ends it
			}
			z.Close() //nolint:errcheck // the client ends it
		case "/slow":
			select {
			case <-release:
			case <-r.Context().Done():
			}
		case "/half":
			w.Header().Set("Content-Length", "10")
			w.Write([]byte("half"))               //nolint:errcheck // the client sees it
			http.NewResponseController(w).Flush() //nolint:errcheck // the client sees it
			panic(http.ErrAbortHandler)
		}
	}), "hook.ns.svc")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close() //nolint:errcheck // a port on which nobody listens
	service := func(name string) *webhook.Service { return &webhook.Service{Namespace: "ns", Name: name} }
	at := func(path string) webhook.Hook { return webhook.Hook{URL: s.URL + path, CABundle: s.CABundle} }
	for _, x := range []struct {
		name string
		to   webhook.Hook
		want string
	}{
		{"redirect", at("/redirect"),
			"the server responded with the status code 307 but did not return more information"},
		{"text", at("/text"), `an error on the server ("went wrong") has prevented the request from succeeding`},
		{"json", at("/json"), "the server could not find the requested resource"},
		{"status", at("/status"), "no"},
		{"empty", at("/empty"), "0-length response with status code: 200 and content type: application/json"},
		{"huge", at("/huge"), "the response is longer than 1048576 bytes"},
		{"bomb", at("/bomb"), "the response is longer than 1048576 bytes"},
		{"slow", at("/slow"), fmt.Sprintf("Post %q: context deadline exceeded", s.URL+"/slow?timeout=200ms")},
		{"half", at("/half"), "unexpected error when reading response body. Please retry. Original error: unexpected EOF"},
		{"nobody", webhook.Hook{URL: "https://" + closed.Addr().String(), CABundle: s.CABundle},
			fmt.Sprintf("Post \"https://%[1]s/?timeout=10s\": dial tcp %[1]s: connect: connection refused",
				closed.Addr())},
		{"other name", webhook.Hook{Service: service("other"), CABundle: s.CABundle},
			`Post "https://other.ns.svc:443/?timeout=10s": tls: failed to verify certificate: x509: certificate is valid for localhost, hook.ns.svc, not other.ns.svc`},
		{"other authority", webhook.Hook{Service: service("hook"), CABundle: other.CABundle},
			`Post "https://hook.ns.svc:443/?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority`},
		{"the system's authorities", webhook.Hook{Service: service("hook")},
			`Post "https://hook.ns.svc:443/?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown authority`},
		{"no authority", webhook.Hook{Service: service("hook"), CABundle: []byte("x")},
			"unable to load root certificates: unable to parse bytes as PEM block"},
		{"nowhere", webhook.Hook{}, "webhook configuration must have either service or URL"},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			timeout := 10 * time.Second
			if x.name == "slow" {
				timeout = 200 * time.Millisecond
			}
			_, err := webhook.New(webhook.Config{Resolver: webhooktest.Resolve{s.Addr()}}).Call(t.Context(), &x.to, nil,
				timeout, limit)
			if err == nil || !strings.HasPrefix(err.Error(), x.want) {
				t.Errorf("got  %v\nwant %s", err, x.want)
			}
			if x.name == "status" && !apierrors.IsForbidden(err) {
				t.Errorf("the webhook's own Status is lost: %#v", err)
			}
		})
	}
	t.Cleanup(func() {
		if n := elsewhere.Load(); n != 0 {
			t.Errorf("%d redirects were followed", n)
		}
	})
}

// gone is a Resolver of Services that are not there.
type gone struct{}

func (gone) Resolve(_ context.Context, _, name string, _ int32) ([]string, error) {
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("no endpoints available for service %q", name))
}

func TestServices(t *testing.T) {
	t.Parallel()
	s := webhooktest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("{}"))
	}), "hook.ns.svc")
	to := webhook.Hook{Service: &webhook.Service{Namespace: "ns", Name: "hook"}, CABundle: s.CABundle}
	_, err := webhook.New(webhook.Config{Resolver: gone{}}).Call(t.Context(), &to, nil, time.Second, limit)
	if want := `Post "https://hook.ns.svc:443/?timeout=1s": no endpoints available for service "hook"`; err == nil ||
		err.Error() != want {
		t.Errorf("no endpoints: got %v, want %s", err, want)
	}
	if !apierrors.IsServiceUnavailable(err) {
		t.Errorf("the reason is lost: %#v", err)
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close() //nolint:errcheck // a port on which nobody listens
	both := webhooktest.Resolve{closed.Addr().String(), s.Addr()}
	if _, err := webhook.New(webhook.Config{Resolver: both}).Call(t.Context(), &to, nil,
		5*time.Second, limit); err != nil {
		t.Errorf("one endpoint of two is dead: %v", err)
	}
}

// oneOf is a Resolver that names another endpoint first each time.
type oneOf struct {
	mu    sync.Mutex
	addrs []string // guarded by mu
}

func (o *oneOf) Resolve(context.Context, string, string, int32) ([]string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.addrs = append(o.addrs[1:], o.addrs[0])
	return slices.Clone(o.addrs), nil
}

// TestEndpointsShareCalls: calls go to all endpoints of a Service though there are idle connections to each, and to
// none that has gone.
func TestEndpointsShareCalls(t *testing.T) {
	t.Parallel()
	var asked [3]atomic.Int32
	var endpoints []string
	var bundle []byte
	for i := range asked {
		s := webhooktest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked[i].Add(1)
			if r.Host != "hook.ns.svc:443" {
				http.Error(w, "asked as "+r.Host, http.StatusBadRequest)
				return
			}
			w.Write([]byte("{}")) //nolint:errcheck // the caller sees it
		}), "hook.ns.svc")
		endpoints, bundle = append(endpoints, s.Addr()), append(bundle, s.CABundle...)
	}
	resolver := &oneOf{addrs: slices.Clone(endpoints)}
	c := webhook.New(webhook.Config{Resolver: resolver})
	to := webhook.Hook{Service: &webhook.Service{Namespace: "ns", Name: "hook"}, CABundle: bundle}
	call := func(n int) {
		t.Helper()
		for range n {
			if _, err := c.Call(t.Context(), &to, nil, 5*time.Second, limit); err != nil {
				t.Fatal(err)
			}
		}
	}
	call(12)
	for i := range asked {
		if n := asked[i].Load(); n != 4 {
			t.Errorf("endpoint %d has %d of 12 calls", i, n)
		}
	}
	resolver.mu.Lock()
	resolver.addrs = slices.Clone(endpoints[:2])
	resolver.mu.Unlock()
	call(4)
	if n := asked[2].Load(); n != 4 {
		t.Errorf("an endpoint that has gone has %d more calls", n-4)
	}
}

// Calls use the connections that are there; the webhooks of one server share them, those of another authority do not.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	s := webhooktest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("{}"))
	}), "hook.ns.svc")
	c := webhook.New(webhook.Config{Resolver: webhooktest.Resolve{s.Addr()}})
	made := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if !i.Reused {
			made++
		}
	}})
	call := func(path string, ca []byte) {
		to := webhook.Hook{Service: &webhook.Service{Namespace: "ns", Name: "hook", Path: path}, CABundle: ca}
		if _, err := c.Call(ctx, &to, nil, 5*time.Second, limit); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		call("/a", s.CABundle)
		call("/b", s.CABundle)
	}
	if made != 1 {
		t.Errorf("%d connections for ten calls", made)
	}
	call("/a", append(s.CABundle, '\n'))
	if made != 2 {
		t.Errorf("%d connections with another authority", made)
	}
}

// More configurations than are kept: each is called, and nothing of the old ones stays open.
func TestManyConfigurations(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("calls", func(t *testing.T) {
		s := webhooktest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Write([]byte("{}"))
		}))
		c := webhook.New(webhook.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		for i := range 4 {
			calls.Go(func() {
				for n := range 80 {
					ca := append(s.CABundle[:len(s.CABundle):len(s.CABundle)], strings.Repeat("\n", 1+i*80+n)...)
					if _, err := c.Call(ctx, &webhook.Hook{URL: s.URL, CABundle: ca}, nil, 10*time.Second,
						limit); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		calls.Wait()
		if n := s.Open(); n > 256+4 {
			t.Errorf("%d connections are open", n)
		}
		cancel()
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		if _, err := c.Call(ctx, &webhook.Hook{URL: s.URL, CABundle: s.CABundle}, nil, time.Second,
			limit); !errors.Is(err, context.Canceled) {
			t.Errorf("a call that is over: %v", err)
		}
	})
}

// TestWays: connections to Services and those to URLs each go their own way, and no other.
func TestWays(t *testing.T) {
	t.Parallel()
	s := webhooktest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "answer") //nolint:errcheck // the client sees it
	}), "hook.ns.svc")
	var gone []string
	way := func(name string) func(ctx context.Context, network, addr string) (net.Conn, error) {
		return func(ctx context.Context, network, addr string) (net.Conn, error) {
			gone = append(gone, name+" "+addr)
			return (&net.Dialer{}).DialContext(ctx, network, s.Addr())
		}
	}
	c := webhook.New(webhook.Config{Resolver: webhooktest.Resolve{"10.0.0.1:8443"}, ToServices: way("service"),
		ToURLs: way("URL")})
	for _, to := range []webhook.Hook{{Service: &webhook.Service{Namespace: "ns", Name: "hook"}},
		{URL: s.URL + "/x"}} {
		to.CABundle = s.CABundle
		if answer, err := c.Call(t.Context(), &to, nil, time.Minute, limit); err != nil || string(answer) != "answer" {
			t.Errorf("%q, %v", answer, err)
		}
	}
	if want := []string{"service 10.0.0.1:8443", "URL " + s.Addr()}; !slices.Equal(gone, want) {
		t.Errorf("connections went %v, want %v", gone, want)
	}
}
