package selector

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"bonsai/pkg/referencetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const header = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n"

// opened returns the Selector of a file in which each kind has the connection, in YAML's flow style.
func opened(t *testing.T, r prometheus.Registerer, connections map[string]string) *Selector {
	t.Helper()
	text := header
	for name, c := range connections {
		text += fmt.Sprintf("- {name: %s, connection: %s}\n", name, c)
	}
	path := filepath.Join(t.TempDir(), "egress.yaml")
	write(t, path, []byte(text))
	s, err := Open(path, Options{Metrics: r})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// goesThrough sends more through dial than any buffer has room for, and wants it back. It then closes the connection.
func goesThrough(t *testing.T, dial Dial, addr string) {
	t.Helper()
	conn, err := dial(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if conn.LocalAddr() == nil || conn.RemoteAddr() == nil {
		t.Error("the connection has no address")
	}
	want := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	go func() { _, _ = conn.Write(want) }()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("what came back is not what went out: %v", err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(got); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading beyond the deadline: %v", err)
	}
}

// TestDial: each kind of connection goes its own way, by every protocol and transport, and metrics count it.
func TestDial(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), echo(t)
	p := newPaths(t, dir)
	own, other := p.certificate, filepath.Join(dir, "uds")
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]}))
	plain, secured := listen(t, "tcp", "127.0.0.1:0"), listen(t, "tcp", "127.0.0.1:0")
	overTCP, overUDS := connectProxy(t, plain), connectProxy(t, listen(t, "unix", other))
	overTLS := connectProxy(t, secure(secured, own, pool))
	server := &tunnels{}
	socket, _ := konnectivity(t, server)
	counted := prometheus.NewRegistry()
	s := opened(t, counted, map[string]string{
		Etcd: "{proxyProtocol: HTTPConnect, transport: {uds: {udsName: " + other + "}}}",
		Cluster: "{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://" + secured.Addr().String() +
			"', tlsConfig: {caBundle: " + dir + "/ca.pem, clientCert: " + dir + "/cert.pem, clientKey: " + dir +
			"/key.pem}}}}",
		ControlPlane: "{proxyProtocol: GRPC, transport: {uds: {udsName: " + socket + "}}}",
	})
	for _, kind := range []string{Etcd, Cluster, ControlPlane} {
		goesThrough(t, s.Dial(kind), to)
	}
	goesThrough(t, opened(t, nil, map[string]string{
		Etcd: "{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'http://" + plain.Addr().String() + "'}}}"}).Dial(Etcd), to)
	for name, n := range map[string]int32{"TCP": overTCP.Load(), "UDS": overUDS.Load(), "TLS": overTLS.Load()} {
		if n != 1 {
			t.Errorf("the proxy over %s opened %d connections, want 1", name, n)
		}
	}
	if _, err := s.Dial(Etcd)(t.Context(), "tcp", "127.0.0.1:1"); err == nil ||
		err.Error() != "proxy error from "+other+" while dialing 127.0.0.1:1, code 502: 502 Bad Gateway" {
		t.Errorf("a port at which nobody listens: %v", err)
	}
	if got, want := counts(t, counted), map[string]float64{
		"dial_failure_count http_connect proxy uds": 1,
		"dial_start_total grpc uds":                 1,
		"dial_start_total http_connect tcp":         1,
		"dial_start_total http_connect uds":         2,
		"dial_duration_seconds grpc uds":            1,
		"dial_duration_seconds http_connect tcp":    1,
		"dial_duration_seconds http_connect uds":    1,
	}; !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// counts returns what metrics count, by their name without its beginning and the values of their labels.
func counts(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "apiserver_egress_dialer_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			out[name] = m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return out
}

// TestDirect: without a file, and where a file says so or says nothing, connections are direct.
func TestDirect(t *testing.T) {
	t.Parallel()
	var none *Selector
	if none.Dial(Cluster) != nil || none.Lookup() != nil {
		t.Error("without a file, something dials")
	}
	s := opened(t, nil, map[string]string{Cluster: "{proxyProtocol: Direct}"})
	if s.Dial(Cluster) != nil || s.Dial(Etcd) != nil || s.Lookup() == nil {
		t.Error("a direct way is none, or there is no Lookup")
	}
}

// TestFailures: a proxy that refuses, is down, is no proxy, never answers or never ends its answer gives an error that
// says so, and no connection.
func TestFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name, says string) string {
		path := filepath.Join(dir, name)
		accept(t, listen(t, "unix", path), func(conn net.Conn) {
			_, _ = io.WriteString(conn, says)
			if says != "" { // a server that has said everything reads on, so that the client reads it all
				_, _ = io.Copy(io.Discard, conn)
				return
			}
			<-t.Context().Done()
		})
		return path
	}
	refusing, _ := konnectivity(t, &tunnels{refuse: "No agent available"})
	dead, stop := konnectivity(t, &tunnels{})
	stop()
	mute := &tunnels{}
	mute.mute.Store(true)
	silent, _ := konnectivity(t, mute)
	const connect, grpc = protocolHTTPConnect, protocolGRPC
	long, none := strings.Repeat("x", 1<<16), filepath.Join(dir, "none")
	for name, c := range map[string]struct{ protocol, socket, want string }{
		"refused": {connect, at("a", "HTTP/1.1 403 Forbidden\r\n\r\n"), "code 403: 403 Forbidden"},
		"refused with a word": {connect, at("g", "HTTP/1.1 500 No\r\n\r\nno tunnels\x1b[31m: "+long),
			"code 500: 500 No: no tunnels[31m: " + long[:200]},
		"endless":              {connect, at("b", "HTTP/1.1 200 OK\r\nX: "+long), "more than 16384 bytes"},
		"no HTTP":              {connect, at("c", "SSH-2.0-x\r\n\r\n"), "malformed HTTP"},
		"no answer":            {connect, at("d", ""), "deadline exceeded"},
		"half an answer":       {connect, at("e", "HTTP/1.1 200 OK\r\nX: y\r\n"), "deadline exceeded"},
		"no socket":            {connect, none, "connect to the egress proxy " + none},
		"gRPC refused":         {grpc, refusing, refusing + " while dialing 127.0.0.1:1, No agent available"},
		"gRPC server gone":     {grpc, dead, "connect to the egress proxy " + dead},
		"gRPC no socket":       {grpc, none, "no such file"},
		"gRPC that is no gRPC": {grpc, at("f", ""), "deadline exceeded"},
		"gRPC no answer":       {grpc, silent, "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			s := opened(t, nil, map[string]string{
				Cluster: "{proxyProtocol: " + c.protocol + ", transport: {uds: {udsName: " + c.socket + "}}}"})
			conn, err := s.Dial(Cluster)(ctx, "tcp", "127.0.0.1:1")
			if err == nil {
				_ = conn.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestNoPasswords: whatever is wrong with a proxy, the error does not show the password of its URL.
func TestNoPasswords(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "egress.yaml")
	for _, c := range []string{
		"tcp: {url: 'socks5://u:secret@h:1'}",
		"tcp: {url: 'u:secret@h:1'}",
		"tcp: {url: 'http://u:secret@h:1'}",
		"tcp: {url: 'http://u:secret@:1'}",
		"tcp: {url: 'http://u:secret@h:port'}",
		"tcp: {url: 'http://u:sec/secret@h:1'}",
		"tcp: {url: 'http://u:%secret@h:1'}",
		"tcp: {url: 'https://u:secret@h:1', tlsConfig: {clientCert: /none, clientKey: /none}}",
		"tcp: {url: 'https://u:secret@h:1'}",
		"uds: {udsName: /x}, tcp: {url: 'http://u:secret@h:1'}",
		"uds: {udsName: /x}, tcp: {url: 'http://u:%secret@h:1'}",
	} {
		write(t, path, []byte(header+"- {name: etcd, connection: {proxyProtocol: HTTPConnect, transport: {"+c+"}}}\n"))
		if _, err := Open(path, Options{}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", c, err)
		}
	}
}

// TestSilentTLS: a proxy that never shakes hands holds no dial beyond its context.
func TestSilentTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	newPaths(t, dir)
	l := listen(t, "tcp", "127.0.0.1:0")
	accept(t, l, func(net.Conn) { <-t.Context().Done() })
	s := opened(t, nil, map[string]string{
		Etcd: "{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://" + l.Addr().String() +
			"', tlsConfig: {clientCert: " + dir + "/cert.pem, clientKey: " + dir + "/key.pem}}}}"})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Dial(Etcd)(ctx, "tcp", "127.0.0.1:1"); !errors.Is(err, context.DeadlineExceeded) ||
		!strings.Contains(err.Error(), "connect to the egress proxy "+l.Addr().String()) {
		t.Errorf("got %v", err)
	}
}

// TestEarlyBytes: what the other side says with the proxy's answer is the connection's first bytes.
func TestEarlyBytes(t *testing.T) {
	t.Parallel()
	here, there := net.Pipe()
	go func() {
		defer there.Close()
		_, _ = there.Read(make([]byte, 1000))
		_, _ = io.WriteString(there, "HTTP/1.1 200 OK\r\n\r\nhello")
	}()
	p := &proxy{name: "x", connect: func(context.Context) (net.Conn, error) { return here, nil }}
	conn, err := p.httpConnect(t.Context(), "tcp", "10.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestBound: a proxy that takes a connection and says nothing holds a dial half a minute, whatever the caller's bound.
func TestBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		defer there.Close()
		go func() { _, _ = io.Copy(io.Discard, there) }()
		began := time.Now()
		p := &proxy{name: "x", connect: func(context.Context) (net.Conn, error) { return here, nil }}
		_, err := p.httpConnect(t.Context(), "tcp", "10.0.0.1:1")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != dialTimeout {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

// TestOtherSideSpeaksFirst: what the other side says before it hears anything is not lost.
func TestOtherSideSpeaksFirst(t *testing.T) {
	t.Parallel()
	first := listen(t, "tcp", "127.0.0.1:0")
	accept(t, first, func(conn net.Conn) { _, _ = io.WriteString(conn, "hello") })
	socket, _ := konnectivity(t, &tunnels{})
	s := opened(t, nil, map[string]string{
		Etcd: "{proxyProtocol: GRPC, transport: {uds: {udsName: " + socket + "}}}"})
	for range 50 {
		conn, err := s.Dial(Etcd)(t.Context(), "tcp", first.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(conn); err != nil || string(got) != "hello" {
			t.Errorf("got %q, %v", got, err)
		}
		_ = conn.Close()
	}
}

// TestNothingStays: when connections and dials have ended, whoever ended them, no goroutine and no tunnel of theirs is
// left.
func TestNothingStays(t *testing.T) { //nolint:paralleltest // it counts goroutines
	to := echo(t)
	server := &tunnels{}
	socket, stop := konnectivity(t, server)
	s := opened(t, nil, map[string]string{
		Cluster: "{proxyProtocol: GRPC, transport: {uds: {udsName: " + socket + "}}}"})
	flood := listen(t, "tcp", "127.0.0.1:0")
	accept(t, flood, func(conn net.Conn) {
		for _, err := conn.Write(make([]byte, 1<<16)); err == nil; _, err = conn.Write(make([]byte, 1<<16)) {
		}
	})
	open := func(to string) net.Conn {
		conn, err := s.Dial(Cluster)(t.Context(), "tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}
	ends := func(when string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
			left := server.open.Load()
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			n := bytes.Count(stacks, []byte("konnectivity-client/pkg/client.")) +
				bytes.Count(stacks, []byte("newTunnelled"))
			if left == 0 && n == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d tunnels and %d goroutines are left:\n%s", when, left, n, stacks)
			}
		}
	}
	for range 10 {
		conn := open(to)
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("a closed connection gives bytes")
		}
		_ = conn.Close()
	}
	ends("after Close")
	unread := open(flood.Addr().String())
	if _, err := io.ReadFull(unread, make([]byte, 1<<20)); err != nil {
		t.Error(err)
	}
	if err := unread.Close(); err != nil {
		t.Error(err)
	}
	ends("after Close while the other side sends")
	server.mute.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := s.Dial(Cluster)(ctx, "tcp", to); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled dial: %v", err)
	}
	ends("after a cancelled dial")
	server.mute.Store(false)
	conn := open(to)
	stop()
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("a connection whose proxy went away ends with %v", err)
	}
	_ = conn.Close()
	ends("after the proxy went away")
}

// TestReference: the page of the metrics is theirs.
func TestReference(t *testing.T) {
	t.Parallel()
	r := referencetest.NewRegistry()
	newMetrics(r)
	referencetest.MetricsPage(t, "kube-apiserver-egress", "Metrics of egress proxies",
		"At `/metrics` of kube-apiserver with `--egress-selector-config-file`.", "./pkg/apiserver/egress/selector",
		r.Metrics())
}
