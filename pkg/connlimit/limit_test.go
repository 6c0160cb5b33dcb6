package connlimit

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// fake is a connection from an address that has been silent for a while.
type fake struct {
	net.Conn
	name   string
	from   string
	silent time.Duration
	closed *[]string
}

func (f *fake) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.from), Port: 1} }
func (f *fake) Close() error         { *f.closed = append(*f.closed, f.name); return nil }

// TestEnter: each step is NAME@ADDRESS[+SECONDS of silence], or -NAME for one that leaves; what comes of it is the
// connections that were closed for others, and those that were refused.
func TestEnter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, steps, closed, refused string }{
		{"room for all", "a@1 b@2 c@3 d@4", "", ""},
		{"the longest silent goes", "a@1+20 b@2+30 c@3+11 d@4 e@5", "b", ""},
		{"and then the next", "a@1+20 b@2+30 c@3+11 d@4 e@5 f@6", "b a", ""},
		{"nobody is silent", "a@1+9 b@2 c@3 d@4 e@5", "", "e"},
		{"one address has a part", "a@1 b@1 c@1", "", "c"},
		{"and its own make room", "a@1+12 b@1+11 c@1 d@2+99", "a", ""},
		{"others' do not", "a@1 b@1 d@2+99 c@1", "", "c"},
		{"loopback has no part", "a@127.0.0.1 b@127.0.0.1 c@127.0.0.1 d@::1 e@9+1", "", "e"},
		{"who leaves makes room", "a@1 b@2 c@3 d@4 -b e@5", "", ""},
		{"and room in its part", "a@1 b@1 -a c@1", "", ""},
		{"leaving twice counts once", "a@1+99 b@2 c@3 d@4 e@5 -a f@6", "a", "f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := New(Config{Most: 4, PerSource: 2, Silent: 10 * time.Second})
			l.silence = func(conn net.Conn) time.Duration { return conn.(*fake).silent }
			var closed, refused []string
			leaves := map[string]func(){}
			for step := range strings.FieldsSeq(c.steps) {
				if name, ok := strings.CutPrefix(step, "-"); ok {
					leaves[name]()
					continue
				}
				name, from, _ := strings.Cut(step, "@")
				from, silent, _ := strings.Cut(from, "+")
				if !strings.ContainsAny(from, ".:") {
					from = "192.0.2." + from
				}
				f := &fake{name: name, from: from, closed: &closed}
				if silent != "" {
					f.silent, _ = time.ParseDuration(silent + "s")
				}
				leave, err := l.Enter(f)
				if err != nil {
					if !errors.Is(err, ErrFull) && !errors.Is(err, ErrSource) {
						t.Error(err)
					}
					refused = append(refused, name)
				}
				leaves[name] = leave
			}
			if got := strings.Join(closed, " "); got != c.closed {
				t.Errorf("closed %q, not %q", got, c.closed)
			}
			if got := strings.Join(refused, " "); got != c.refused {
				t.Errorf("refused %q, not %q", got, c.refused)
			}
			count := 0
			for _, n := range l.sources {
				count += n
			}
			if count != len(l.all) || len(l.all) > 4 {
				t.Errorf("%d connections, %d by source", len(l.all), count)
			}
		})
	}
}

// TestSilence: the kernel's account of a real connection.
func TestSilence(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	// A read that nothing answers takes as long as its deadline says, and is the silence that is measured.
	if err := server.SetReadDeadline(time.Now().Add(60 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); err == nil {
		t.Fatal("there was something to read")
	}
	if err := server.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	before := silence(server)
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := server.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if after := silence(server); before < 50*time.Millisecond || after >= before {
		t.Errorf("silent for %v, then for %v", before, after)
	}
	server.Close()
	if got := silence(server); got < time.Hour {
		t.Errorf("a closed connection is silent for %v", got)
	}
}
