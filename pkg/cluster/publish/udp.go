package publish

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// questionSilent is how long a client of DNS must have been silent before it gives way to another one of its address.
// It is short: a pod that looks up names has a client for each question, and loses nothing with one that has its
// answer.
const questionSilent = time.Second

// largestDatagram is a buffer size in bytes that no datagram of UDP exceeds, so that none is cut off.
const largestDatagram = 1 << 16

// flows are the clients of a published port of UDP. Each client has a socket of its own, which is connected to one
// node, so that answers find their way back.
type flows struct {
	p        *Publisher
	socket   *net.UDPConn
	nodePort int
	// turn selects the node for new flows. A datagram that is lost shows nowhere, so only a node that refuses (ICMP)
	// makes it advance.
	turn    atomic.Uint32
	silent  time.Duration // until a client gives way to another one of its address
	running sync.WaitGroup

	mu      sync.Mutex
	nodes   map[netip.AddrPort]*flow // by client; at most publishedMost
	sources map[netip.Addr]int       // how many clients of each address are in nodes; at most publishedPart
}

// flow is the socket of one client.
type flow struct {
	net.Conn
	used time.Time // when the client last sent a datagram; guarded by mu of flows
}

// serveUDP forwards datagrams until the socket is closed.
func (p *Publisher) serveUDP(ctx context.Context, socket *net.UDPConn, nodePort int) {
	f := &flows{p: p, socket: socket, nodePort: nodePort, nodes: map[netip.AddrPort]*flow{},
		sources: map[netip.Addr]int{}, silent: p.room.Silent}
	if nodePort == dnsPort {
		f.silent = questionSilent
	}
	// Deferred calls run in reverse: the sockets close first, which ends the goroutines that Wait waits for.
	defer f.running.Wait()
	defer f.closeAll()
	buffer := make([]byte, largestDatagram)
	for {
		n, client, err := socket.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // the kernel reports here that a client refused an earlier answer
			continue
		}
		node, err := f.to(ctx, client)
		if errors.Is(err, errNoRoom) || errors.Is(err, errNoPart) { // whoever sends many must not fill the log
			p.log.Debug("a client of a published port is refused", "port", nodePort, "from", client, "err", err)
			continue
		}
		if err != nil {
			p.log.Info("cannot lead a datagram to a published port on", "port", nodePort, "err", err)
			continue
		}
		// Even if the write fails: a flow without a deadline would keep its place for ever. The flow may have ended
		// since.
		node.SetReadDeadline(time.Now().Add(p.idle))
		_, _ = node.Write(buffer[:n]) // datagrams may be lost
	}
}

var (
	errNoNodes = errors.New("there is no node")
	errNoRoom  = errors.New("too many clients")
	errNoPart  = errors.New("too many clients of one address")
)

// to returns the socket that forwards a client's datagrams, which it opens for a new client. mu is held while the
// socket is made. That is quick: to connect a UDP socket sends nothing. The lock of the publisher is taken inside mu,
// and never the other way round.
func (f *flows) to(ctx context.Context, client netip.AddrPort) (net.Conn, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if node := f.nodes[client]; node != nil {
		node.used = now
		return node, nil
	}
	source := client.Addr().Unmap()
	// As for TCP, addresses of loopback are all programs of this machine, and have no part of their own.
	if !source.IsLoopback() && f.sources[source] >= f.p.room.PerSource &&
		!f.makeRoom(now, f.silent, func(a netip.Addr) bool { return a == source }) {
		return nil, errNoPart
	}
	if len(f.nodes) >= f.p.room.Most && !f.makeRoom(now, f.p.room.Silent, func(netip.Addr) bool { return true }) {
		return nil, errNoRoom
	}
	f.p.mu.Lock()
	nodes := f.p.nodes
	f.p.mu.Unlock()
	if len(nodes) == 0 {
		return nil, errNoNodes
	}
	turn := f.turn.Load()
	node, err := f.p.dial(ctx, "udp", netip.AddrPortFrom(nodes[int(turn)%len(nodes)], uint16(f.nodePort)).String())
	if err != nil {
		return nil, err
	}
	opened := &flow{Conn: node, used: now}
	f.nodes[client] = opened
	f.sources[source]++
	f.running.Go(func() { f.answer(opened, client, turn) })
	return opened, nil
}

// makeRoom ends the flow whose client has been silent for longest, of those from addresses that may be chosen, if that
// is at least as long as given. The caller holds mu.
func (f *flows) makeRoom(now time.Time, silent time.Duration, may func(netip.Addr) bool) bool {
	var chosen netip.AddrPort
	oldest := now.Add(-silent)
	for client, node := range f.nodes {
		if may(client.Addr().Unmap()) && !node.used.After(oldest) {
			chosen, oldest = client, node.used
		}
	}
	node := f.nodes[chosen]
	if node == nil {
		return false
	}
	f.remove(chosen)
	node.Close()
	return true
}

// remove takes the flow of a client out. The caller holds mu.
func (f *flows) remove(client netip.AddrPort) {
	delete(f.nodes, client)
	source := client.Addr().Unmap()
	if f.sources[source]--; f.sources[source] == 0 {
		delete(f.sources, source)
	}
}

// answer forwards a node's datagrams to the client, until neither side has sent anything for the idle time, or the node
// refuses. Each flow has a goroutine and a buffer of its own, so publishedMost flows hold 64 MiB.
func (f *flows) answer(node *flow, client netip.AddrPort, turn uint32) {
	defer f.forget(client, node)
	buffer := make([]byte, largestDatagram)
	for {
		n, err := node.Read(buffer)
		if errors.Is(err, syscall.ECONNREFUSED) {
			f.turn.CompareAndSwap(turn, turn+1)
		}
		if err != nil {
			return
		}
		node.SetReadDeadline(time.Now().Add(f.p.idle)) // it may have ended meanwhile
		if _, err := f.socket.WriteToUDPAddrPort(buffer[:n], client); err != nil {
			return
		}
	}
}

// forget ends a flow. The client may have another one by now, if this one has made room.
func (f *flows) forget(client netip.AddrPort, node *flow) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodes[client] == node { // else it has made room, and the client may have another
		f.remove(client)
	}
	node.Close()
}

// closeAll closes all sockets, which ends the goroutines that read them.
func (f *flows) closeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, node := range f.nodes {
		node.Close()
	}
}
