// Package connlimit bounds TCP connections, in all and from one address, so that a client that opens many and says
// nothing locks nobody out. Where there is no room, a Limit, for forwarders, ends the connection that has been silent
// for longest. An Untrusted, for HTTP servers, ends the oldest one whose client has shown no right yet.
package connlimit

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Config says how much is carried.
type Config struct {
	// Most is how many connections there may be, PerSource how many of them from one address. Addresses of loopback are
	// all programs of this machine, and have no part of their own.
	Most, PerSource int
	// Silent is how long neither side must have said anything before a connection may have to make room.
	Silent time.Duration
}

// ErrFull is why a connection is refused.
var ErrFull = errors.New("too many connections, and none of them silent")

// ErrSource is why a connection of one address is refused, while there is room for others.
var ErrSource = errors.New("too many connections from one address, and none of them silent")

// Limit holds the connections that there are. Make it with New.
type Limit struct {
	cfg     Config
	silence func(net.Conn) time.Duration

	mu      sync.Mutex
	all     map[net.Conn]netip.Addr // at most cfg.Most
	sources map[netip.Addr]int      // how many of each address are in all
}

// New returns a Limit without connections.
func New(cfg Config) *Limit {
	return &Limit{cfg: cfg, silence: silence, all: map[net.Conn]netip.Addr{}, sources: map[netip.Addr]int{}}
}

// Enter takes a connection in until leave is called, and may close another one for it. It returns ErrFull or ErrSource
// for one that there is no room for; the caller closes it.
func (l *Limit) Enter(conn net.Conn) (leave func(), err error) {
	source := addressOf(conn)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !source.IsLoopback() && l.sources[source] >= l.cfg.PerSource && !l.makeRoom(func(a netip.Addr) bool {
		return a == source
	}) {
		return nil, ErrSource
	}
	if len(l.all) >= l.cfg.Most && !l.makeRoom(func(netip.Addr) bool { return true }) {
		return nil, ErrFull
	}
	l.all[conn] = source
	l.sources[source]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.forget(conn)
	}, nil
}

// makeRoom ends the connection that has been silent for longest, of those from addresses that may be chosen. It reports
// whether there was one. The caller holds mu.
func (l *Limit) makeRoom(may func(netip.Addr) bool) bool {
	var chosen net.Conn
	longest := l.cfg.Silent
	for conn, source := range l.all {
		if !may(source) {
			continue
		}
		if s := l.silence(conn); s >= longest {
			chosen, longest = conn, s
		}
	}
	if chosen == nil {
		return false
	}
	if tcp, ok := chosen.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // a hint
	}
	chosen.Close()
	l.forget(chosen)
	return true
}

func (l *Limit) forget(conn net.Conn) {
	source, there := l.all[conn]
	if !there {
		return // it has made room
	}
	delete(l.all, conn)
	if l.sources[source]--; l.sources[source] == 0 {
		delete(l.sources, source)
	}
}

// addressOf is the address that a connection comes from; of what is no TCP, none.
func addressOf(conn net.Conn) netip.Addr {
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return from.Addr().Unmap()
}

// silence is how long neither side of a connection has said anything. The kernel knows (tcp(7), TCP_INFO), so that
// carrying costs nothing; one that has been closed is asked no more.
func silence(conn net.Conn) time.Duration {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	var info *unix.TCPInfo
	var failed error
	if err := raw.Control(func(fd uintptr) {
		info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	}); err != nil || failed != nil {
		return math.MaxInt64 // closed: its place is as good as free
	}
	return time.Duration(min(info.Last_data_recv, info.Last_data_sent)) * time.Millisecond
}
