package connlimit

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// sender is a connection from an address, on which as much comes as is read.
type sender struct {
	fake
}

func (*sender) Read(b []byte) (int, error) { return len(b), nil }

// listened are the connections that a listener accepts.
type listened struct {
	net.Listener
	next net.Conn
}

func (l *listened) Accept() (net.Conn, error) { return l.next, nil }

// TestUntrusted: each step is NAME@ADDRESS for a connection, NAME+BYTES for what is received on it, NAME= for an answer
// to that, NAME! for one that is trusted, NAME? for one that a handler takes over, and -NAME for one that leaves. Four
// connections are allowed, and 1,000 bytes. What comes of it is the connections that were closed for others.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, steps, closed string }{
		{"room for all", "a@1 b@2 c@3 d@4", ""},
		{"one address may have all", "a@1 b@1 c@1 d@1", ""},
		{"the oldest goes", "a@1 b@2 c@3 d@4 e@5 f@6", "a b"},
		{"of the address with the most", "a@1 b@2 c@2 d@2 e@3", "b"},
		{"also where nobody has many", "a@1 b@2 c@3 d@3 e@4", "c"},
		{"a flood ends its own", "a@1 b@2 c@2 d@3 e@2 f@2 g@2", "b c e"},
		{"so do two floods", "a@1 b@2 c@2 d@3 e@3 f@2 g@3 h@3", "b c d e"},
		{"loopback is one address", "a@1 b@127.0.0.1 c@127.0.0.1 d@127.0.0.1 e@2", "b"},
		{"a trusted one stays", "a@1 a! b@1 c@1 d@1 e@1 f@1 g@1", "b c"},
		{"one that was taken over stays", "a@1+900 a? a+900 b@1 c@1 d@1 e@1 f@1", "b"},
		{"and is trusted once", "a@1 a! a! b@1 c@1 d@1 e@1", ""},
		{"who leaves makes room", "a@1 b@2 c@3 d@4 -b e@5", ""},
		{"leaving twice counts once", "a@1 b@2 c@3 d@4 e@5 -a f@6", "a b"},
		{"the most bytes go", "a@1+400 b@1+500 c@1+200", "b"},
		{"of the address with the most bytes", "a@1+300 b@1+320 c@2+350 d@3+100", "b"},
		{"until they are few enough", "a@1+999 b@2+999 c@3+999", "a b"},
		{"trusted ones send what they like", "a@1+900 a! a+5000 b@2+900", ""},
		{"what was answered is forgotten", "a@1+900 a= b@2+900 b= a+900", ""},
		{"and counts again", "a@1+600 a= a+600 b@2+600", "a"},
		{"a closed one sends nothing", "a@1 b@2 c@3 d@4 e@5 a+2000 a= a! b+1000", "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u := NewUntrusted(UntrustedConfig{Most: 4, Bytes: 1000})
			l := &listened{}
			accepting := u.Listener(l)
			var closed []string
			conns := map[string]net.Conn{}
			for step := range strings.FieldsSeq(c.steps) {
				if name, ok := strings.CutPrefix(step, "-"); ok {
					conns[name].(*untrustedConn).release() // as by Close, which the fake would note
					continue
				}
				step, bytes, received := strings.Cut(step, "+")
				name, from, connects := strings.Cut(step, "@")
				if connects {
					if !strings.Contains(from, ".") {
						from = "192.0.2." + from
					}
					l.next = &sender{fake{name: name, from: from, closed: &closed}}
					conn, err := accepting.Accept()
					if err != nil {
						t.Fatal(err)
					}
					conns[name] = conn
				}
				if name, ok := strings.CutSuffix(name, "!"); ok {
					Trust(ConnContext(t.Context(), tls.Server(conns[name], &tls.Config{})))
				} else if name, ok := strings.CutSuffix(name, "?"); ok {
					ConnState(conns[name], http.StateHijacked)
				} else if name, ok := strings.CutSuffix(name, "="); ok {
					ConnState(conns[name], http.StateActive)
					ConnState(conns[name], http.StateIdle)
				}
				if received {
					n, err := strconv.Atoi(bytes)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := conns[name].Read(make([]byte, n)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if got := strings.Join(closed, " "); got != c.closed {
				t.Errorf("closed %q, not %q", got, c.closed)
			}
			for _, conn := range conns {
				conn.Close()
			}
			if u.open.Len() != 0 || u.bytes != 0 || len(u.sources) != 0 {
				t.Errorf("%d connections, %d bytes and %d addresses still count", u.open.Len(), u.bytes, len(u.sources))
			}
		})
	}
}

// TestServer: real servers, with and without TLS and HTTP/2, find the connection of a request. Without HTTP/2, nothing
// of earlier requests counts during the next one.
func TestServer(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*httptest.Server){
		"plain":  (*httptest.Server).Start,
		"TLS":    (*httptest.Server).StartTLS,
		"HTTP/2": func(s *httptest.Server) { s.EnableHTTP2 = true; s.StartTLS() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := NewUntrusted(UntrustedConfig{Most: 2, Bytes: 1 << 20})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/trusted" {
					Trust(r.Context())
				}
				conns, bytes := u.count()
				fmt.Fprintln(w, r.ProtoMajor, conns, bytes)
			}))
			server.Listener = u.Listener(server.Listener)
			server.Config.ConnContext, server.Config.ConnState = ConnContext, ConnState
			start(server)
			t.Cleanup(server.Close)
			var protocol, conns, first, bytes int
			for i := range 5 {
				ask(t, server, "/", &protocol, &conns, &bytes)
				if i == 0 {
					first = bytes
				}
				// Over TLS, the server may have read a record of the next request before it is done with this one, and
				// then forgets it.
				if conns != 1 || first == 0 || protocol == 1 && bytes > first || protocol == 2 && bytes < first {
					t.Errorf("%d connections and %d bytes count, %d at first", conns, bytes, first)
				}
			}
			if (protocol == 2) != (name == "HTTP/2") {
				t.Errorf("HTTP/%d", protocol)
			}
			for range 2 {
				if ask(t, server, "/trusted", &protocol, &conns, &bytes); conns != 0 || bytes != 0 {
					t.Errorf("trusted: %d connections and %d bytes count", conns, bytes)
				}
			}
		})
	}
}

// count is what counts in an Untrusted.
func (u *Untrusted) count() (conns, bytes int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open.Len(), u.bytes
}

// ask reads the numbers that a server answers.
func ask(t *testing.T, server *httptest.Server, path string, numbers ...any) {
	t.Helper()
	response, err := server.Client().Get(server.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body) // to its end, or the connection would not be used again
	if err == nil {
		_, err = fmt.Sscan(string(text), numbers...)
	}
	if err != nil {
		t.Fatal(err)
	}
}
