package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"

	"bonsai/pkg/connlimit/connlimittest"
)

// TestFloodOfConnections: a pod that opens any number of connections has maxUntrusted of them at most. It keeps nobody
// else out, and ends no stream of a user who may open it, however silent.
func TestFloodOfConnections(t *testing.T) {
	t.Parallel()
	f := start(t)
	address := strings.TrimPrefix(f.url, "https://")
	admin := f.client(f.ca.client(t, "admin", "system:masters"))
	stream := f.exec(t)
	stream.echo(t, "before")

	const more = 20
	conns := connlimittest.Flood(t, address, maxUntrusted+more/2)
	// Others get in, now and later.
	if code, body := do(t, admin, http.MethodGet, f.url+"/healthz", ""); code != http.StatusOK {
		t.Errorf("during a flood: %d %s", code, body)
	}
	conns = append(conns, connlimittest.Flood(t, address, more/2)...)
	connlimittest.WantClosed(t, conns, more)
	if code, body := do(t, admin, http.MethodGet, f.url+"/healthz", ""); code != http.StatusOK {
		t.Errorf("after a flood: %d %s", code, body)
	}
	stream.echo(t, "after")
	stream.end(t)
}

// TestConnectionsThatMakeRoom: a connection stays if the user of a request on it was allowed something. It makes room
// for others if not, even if the user is known.
func TestConnectionsThatMakeRoom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path  string
		code  int
		stays bool
	}{
		"allowed":   {"/pods", http.StatusOK, true},
		"forbidden": {"/healthz", http.StatusForbidden, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t)
			client, dialed := f.client(), 0
			transport := client.Transport.(*http.Transport)
			transport.DisableKeepAlives = false
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				dialed++
				return connlimittest.Dialer().DialContext(ctx, network, address)
			}
			defer transport.CloseIdleConnections()
			ask := func() {
				t.Helper()
				if code, body := do(t, client, http.MethodGet, f.url+c.path, "good"); code != c.code {
					t.Fatalf("%d %s", code, body)
				}
			}
			ask()
			// It is the oldest, from the same address. If it counts, it goes, and one of the flood with it.
			conns := connlimittest.Flood(t, strings.TrimPrefix(f.url, "https://"), maxUntrusted+1)
			connlimittest.WantClosed(t, conns, 1)
			ask()
			if stayed := dialed == 1; stayed != c.stays {
				t.Errorf("%d connections", dialed)
			}
		})
	}
}

// echoing is an exec whose command echoes what it gets.
type echoing struct {
	in   *io.PipeWriter
	out  *io.PipeReader
	done chan error
}

// exec begins a command in a container, as an administrator.
func (f *fixture) exec(t *testing.T) *echoing {
	t.Helper()
	cert := f.ca.client(t, "admin", "g")
	key, err := x509.MarshalECPrivateKey(cert.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(f.url + "/exec/ns/p/c?command=cat&input=1&output=1")
	if err != nil {
		t.Fatal(err)
	}
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{Host: f.url,
		TLSClientConfig: rest.TLSClientConfig{CAData: pemOf("CERTIFICATE", f.cert.Raw),
			CertData: pemOf("CERTIFICATE", cert.Certificate[0]), KeyData: pemOf("EC PRIVATE KEY", key)}}, "POST", u)
	if err != nil {
		t.Fatal(err)
	}
	e := &echoing{done: make(chan error, 1)}
	in, out := io.Pipe()
	e.in = out
	e.out, out = io.Pipe()
	go func() {
		err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: in, Stdout: out})
		out.CloseWithError(err)
		e.done <- err
	}()
	if _, err := io.ReadFull(e.out, make([]byte, len("p/c [cat] tty=false "))); err != nil {
		t.Fatal(err)
	}
	return e
}

// echo sends a text, and waits for it to come back.
func (e *echoing) echo(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(e.in, text); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(e.out, got); err != nil || string(got) != text {
		t.Fatalf("the stream says %q, %v", got, err)
	}
}

func (e *echoing) end(t *testing.T) {
	t.Helper()
	e.in.Close()
	if err := <-e.done; err != nil {
		t.Error(err)
	}
}
