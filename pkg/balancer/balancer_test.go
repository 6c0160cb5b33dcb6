package balancer

import (
	"bufio"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// server says its name on each connection and then echoes lines.
type server struct {
	net.Listener
	name string
	well atomic.Bool
	// yes and no are how often a check found it well and unwell.
	yes, no atomic.Int32
}

func serve(t *testing.T, name string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Listener: l, name: name}
	s.well.Store(true)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.WriteString(conn, name+"\n")
				io.Copy(conn, conn)
			}()
		}
	}()
	return s
}

// start runs a balancer over servers and returns its address; done is closed when it has ended.
func start(t *testing.T, servers ...*server) (address string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Listener: l, Log: slog.New(slog.DiscardHandler),
		Check: func(_ context.Context, backend string) error {
			for _, s := range servers {
				if s.Addr().String() != backend {
					continue
				}
				if s.well.Load() {
					s.yes.Add(1)
					return nil
				}
				s.no.Add(1)
			}
			return errors.New("unwell")
		}}
	for _, s := range servers {
		cfg.Backends = append(cfg.Backends, s.Addr().String())
	}
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		done <- nil
	}
	t.Cleanup(stop)
	return l.Addr().String(), stop
}

// client is one connection, and the name of who serves it.
type client struct {
	net.Conn
	in   *bufio.Reader
	name string
}

func connect(t *testing.T, address string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := &client{Conn: conn, in: bufio.NewReader(conn)}
	name, err := c.in.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	c.name = strings.TrimSpace(name)
	return c
}

func (c *client) echo(t *testing.T) {
	t.Helper()
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := c.in.ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("echo: %q, %v", line, err)
	}
}

// TestSpread: connections go where there are the fewest, carry both ways, and end on both sides.
func TestSpread(t *testing.T) {
	t.Parallel()
	address, stop := start(t, serve(t, "a"), serve(t, "b"), serve(t, "c"))
	count := map[string]int{}
	var all []*client
	for range 9 {
		c := connect(t, address)
		c.echo(t)
		count[c.name]++
		all = append(all, c)
	}
	if count["a"] != 3 || count["b"] != 3 || count["c"] != 3 {
		t.Errorf("connections: %v", count)
	}
	if err := all[0].Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(all[0].in); err != nil || len(rest) > 0 {
		t.Errorf("after the end: %q, %v", rest, err)
	}
	stop()
	if _, err := all[1].in.ReadByte(); err == nil {
		t.Error("a connection outlives the balancer")
	}
}

// TestDown: a backend that is not ready any more loses its connections and gets no new ones, until it is ready again.
func TestDown(t *testing.T) {
	t.Parallel()
	a, b := serve(t, "a"), serve(t, "b")
	address, _ := start(t, a, b)
	first, second := connect(t, address), connect(t, address)
	if first.name == second.name {
		t.Fatalf("both have %s", first.name)
	}
	if first.name != "a" {
		first, second = second, first
	}
	a.well.Store(false)
	if _, err := first.in.ReadByte(); err == nil { // returns when the connection is cut
		t.Error("it was not cut")
	}
	second.echo(t)
	for range 3 {
		if c := connect(t, address); c.name != "b" {
			t.Errorf("a connection went to %s", c.name)
		}
	}
	a.well.Store(true)
	for connect(t, address).name != "a" { // b has more connections: the first one after it has come up
		<-time.After(5 * time.Millisecond) // each is open until the end
	}
}

// TestAllDown: while none is ready all keep their connections; those that are not lose them when one is.
func TestAllDown(t *testing.T) {
	t.Parallel()
	a, b := newBackend("a"), newBackend("b")
	a.up, b.up = false, false
	balancer := &Balancer{backends: []*backend{a, b}}
	ofA, atA := net.Pipe()
	ofB, atB := net.Pipe()
	a.begin(&carried{client: ofA, server: ofA})
	b.begin(&carried{client: ofB, server: ofB})
	open := func(conn net.Conn) bool {
		if err := conn.SetDeadline(time.Now()); err != nil {
			return false
		}
		_, err := conn.Read(make([]byte, 1))
		return errors.Is(err, os.ErrDeadlineExceeded)
	}
	balancer.cutDown(a)
	balancer.cutDown(b)
	if !open(atA) || !open(atB) {
		t.Error("connections were cut, and nobody else could take them")
	}
	b.up = true
	balancer.cutDown(b)
	balancer.cutDown(a)
	if open(atA) || !open(atB) {
		t.Error("not exactly those of the one that is down were cut")
	}
}

// TestStartTogether: of backends that become ready at the same time, the one that is seen to first does not end the
// connections of the others.
func TestStartTogether(t *testing.T) {
	t.Parallel()
	a, b := serve(t, "a"), serve(t, "b")
	a.well.Store(false)
	b.well.Store(false)
	address, _ := start(t, a, b)
	await := func(n int32, of ...*atomic.Int32) {
		for _, count := range of {
			for count.Load() < n {
				<-time.After(time.Millisecond)
			}
		}
	}
	await(failures+1, &a.no, &b.no) // who was asked once more has gone down before
	first, second := connect(t, address), connect(t, address)
	if first.name == second.name {
		t.Fatalf("both have %s", first.name)
	}
	a.well.Store(true)
	b.well.Store(true)
	await(2, &a.yes, &b.yes)
	first.echo(t)
	second.echo(t)
}

// TestRefused: who takes no connection is passed over before anybody has found it unwell; one that is said to be unwell
// is better than none.
func TestRefused(t *testing.T) {
	t.Parallel()
	a, b := serve(t, "a"), serve(t, "b")
	a.Close()
	b.well.Store(false)
	address, _ := start(t, a, b)
	for range 3 {
		if c := connect(t, address); c.name != "b" {
			t.Errorf("a connection went to %s", c.name)
		}
	}
}

func TestChecked(t *testing.T) {
	t.Parallel()
	b := &backend{up: true}
	for i, c := range []struct {
		ready bool
		want  turn
	}{{true, same}, {false, same}, {true, same}, {false, same}, {false, wentDown}, {false, same}, {true, cameUp},
		{true, same}, {false, same}, {false, wentDown}} {
		if got := b.checked(c.ready); got != c.want {
			t.Errorf("answer %d: %d, want %d", i, got, c.want)
		}
	}
}

// TestPause: a backend is asked every half second, one that is ready and slow no more than half of the time, and one
// that has failed at once.
func TestPause(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		took        time.Duration
		ready, late time.Duration
	}{
		{0, checkEvery, checkEvery},
		{100 * time.Millisecond, 400 * time.Millisecond, 400 * time.Millisecond},
		{250 * time.Millisecond, 250 * time.Millisecond, 250 * time.Millisecond},
		{time.Second, time.Second, 0},
		{checkTimeout, checkTimeout, 0},
	} {
		if ready, late := pause(c.took, true), pause(c.took, false); ready != c.ready || late != c.late {
			t.Errorf("after %v: %v and %v, want %v and %v", c.took, ready, late, c.ready, c.late)
		}
	}
}

func TestReadyz(t *testing.T) {
	t.Parallel()
	var code atomic.Int64
	code.Store(http.StatusOK)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(int(code.Load()))
	}))
	defer s.Close()
	check, err := Readyz(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	if err := check(t.Context(), s.Listener.Addr().String()); err != nil {
		t.Error(err)
	}
	code.Store(http.StatusUnauthorized)
	if err := check(t.Context(), s.Listener.Addr().String()); err != nil {
		t.Errorf("it lets nobody in without credentials: %v", err)
	}
	code.Store(http.StatusInternalServerError)
	if err := check(t.Context(), s.Listener.Addr().String()); err == nil ||
		err.Error() != "/readyz says 500 Internal Server Error" {
		t.Errorf("unready: %v", err)
	}
	if _, err := Readyz([]byte("nothing")); err == nil {
		t.Error("no authority, and no error")
	}
}

// full is a listener that has no room for some connections.
type full struct {
	net.Listener
	refuses atomic.Int32
}

func (f *full) Accept() (net.Conn, error) {
	if f.refuses.Add(-1) >= 0 {
		return nil, syscall.EMFILE
	}
	return f.Listener.Accept()
}

// TestChanged: connections to a server that stays go on when others come or go, those of one that goes end, and new
// ones go to those that there are.
func TestChanged(t *testing.T) {
	t.Parallel()
	a, b, c := serve(t, "a"), serve(t, "b"), serve(t, "c")
	file := filepath.Join(t.TempDir(), "backends")
	write := func(servers ...*server) {
		var text strings.Builder
		for _, s := range servers {
			fmt.Fprintln(&text, s.Addr())
		}
		if err := os.WriteFile(file+"-new", []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+"-new", file); err != nil {
			t.Fatal(err)
		}
	}
	write(a, b)
	backends, err := ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	changes := make(chan []string)
	balancer, err := New(Config{Listener: l, Backends: backends, Changes: changes, Log: slog.New(slog.DiscardHandler),
		Check: func(context.Context, string) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		if err := balancer.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	warned := make(chan string)
	wg.Go(func() { FollowFile(ctx, file, backends, changes, slog.New(slog.NewTextHandler(words(warned), nil))) })
	first, second := connect(t, l.Addr().String()), connect(t, l.Addr().String())
	if first.name != "a" || second.name != "b" {
		t.Fatalf("they have %s and %s", first.name, second.name)
	}
	write()
	if got := <-warned; !strings.Contains(got, "names no server") {
		t.Errorf("an empty file: %s", got)
	}
	first.echo(t)
	write(b, c, c)                                 // c joined again under another name
	if _, err := first.in.ReadByte(); err == nil { // returns when the connection is cut
		t.Error("the connection of one that has gone was not cut")
	}
	if got := connect(t, l.Addr().String()); got.name != "c" {
		t.Errorf("a new one went to %s", got.name)
	}
	second.echo(t)
	write(b)
	for connect(t, l.Addr().String()).name != "b" { // until that is known
		<-time.After(5 * time.Millisecond)
	}
	second.echo(t)
}

// words takes lines of a log.
type words chan string

func (w words) Write(line []byte) (int, error) {
	w <- string(line)
	return len(line), nil
}

// TestReadFile: a file has one server on each line.
func TestReadFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"192.0.2.1:6443\n":                 "",
		"192.0.2.1:6443\n[fd00::1]:6443\n": "",
		"":                                 "names no server",
		"\n":                               "names no server",
		"192.0.2.1:6443\n192.0.2\n":        "missing port",
	} {
		file := filepath.Join(t.TempDir(), "backends")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFile(file)
		if want == "" && (err != nil || len(got) != strings.Count(text, "\n")) ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestNotAccepted: that there is no room for a connection ends no other, and none later.
func TestNotAccepted(t *testing.T) {
	t.Parallel()
	s := serve(t, "a")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener := &full{Listener: l}
	b, err := New(Config{Listener: listener, Backends: []string{s.Addr().String()},
		Check: func(context.Context, string) error {
			return nil
		}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	speak := func() net.Conn {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "a\n" {
			t.Fatalf("heard %q (%v)", line, err)
		}
		return conn
	}
	first := speak()
	listener.refuses.Store(2)
	speak() // accepted already waits for it; the next ones are refused
	speak()
	if _, err := first.Write([]byte("still\n")); err != nil {
		t.Error(err)
	}
	if line, err := bufio.NewReader(first).ReadString('\n'); err != nil || line != "still\n" {
		t.Errorf("the first connection heard %q (%v)", line, err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
