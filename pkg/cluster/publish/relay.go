package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/fairshare"
)

const (
	dnsPort = 53
	// resolverPatience bounds the wait for the answer of one server before the next one is asked.
	resolverPatience = 2 * time.Second
	// relayedMost bounds the questions that wait for an answer at the same time, and relayedPart those of one address.
	// Further ones are dropped, as UDP permits, and the client asks again. CoreDNS would pass an error on to its own
	// clients, and needs more than others: it asks for all pods.
	relayedMost = 256
	relayedPart = 128
	// relayedOld is how long a question may wait while others find no place. Most servers answer within a tenth of it.
	relayedOld = 500 * time.Millisecond
)

// resolverRelay answers DNS for nodes and pods at the host's address on the node network, by asking the servers that
// the host asks. Those may be on the host's loopback, where no pod reaches them (dnsmasq, unbound, systemd-resolved),
// and may change or appear while the cluster runs: it reads /etc/resolv.conf for each question.
type resolverRelay struct {
	conf string
	own  []netip.Addr // the relay's own addresses, which it must not ask
	log  *slog.Logger
	// patience is resolverPatience, except in tests.
	patience time.Duration
	// dial connects a socket, and exchanges nothing yet.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// RelayDNS starts a relay at the first of own, the host's addresses on the node networks. wait returns when it has
// ended, after ctx. If another program has the port, such as a DNS server that listens at all addresses, nodes and pods
// ask that one instead.
func RelayDNS(ctx context.Context, own []netip.Addr, log *slog.Logger) (wait func(), err error) {
	dialer := net.Dialer{Timeout: resolverPatience}
	r := &resolverRelay{conf: host.HostResolvConf, own: own, log: log, patience: resolverPatience,
		dial: dialer.DialContext}
	at := netip.AddrPortFrom(own[0], dnsPort)
	wait, err = r.serve(ctx, at)
	if errors.Is(err, syscall.EADDRINUSE) {
		log.Info("nodes ask the DNS server that is there already", "address", at)
		return func() {}, nil
	}
	return wait, err
}

// serve listens for datagrams and streams. Streams go through a Publisher, which copies them without a look at the
// messages and bounds the connections. It picks the server once for each stream.
func (r *resolverRelay) serve(ctx context.Context, at netip.AddrPort) (wait func(), err error) {
	socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, fmt.Errorf("answer DNS for nodes: %w", err)
	}
	streams := New(r.log)
	streams.dial = func(ctx context.Context, network, _ string) (net.Conn, error) { return r.connect(ctx, network) }
	streams.LeadTo([]netip.Addr{at.Addr()}) // connect ignores the address; there must be one
	listener, err := net.Listen("tcp", at.String())
	if err != nil {
		socket.Close()
		return nil, fmt.Errorf("answer DNS for nodes: %w", err)
	}
	var running sync.WaitGroup
	running.Go(func() { r.serveUDP(ctx, socket) })
	running.Go(func() { streams.serve(ctx, listener, dnsPort) })
	running.Go(func() {
		<-ctx.Done()
		socket.Close()
		listener.Close()
	})
	return running.Wait, nil
}

// serveUDP answers questions until the socket is closed, and returns when the last one has its answer. A pod that asks
// for names whose servers are silent keeps each question waiting for seconds; the others still have their part.
func (r *resolverRelay) serveUDP(ctx context.Context, socket *net.UDPConn) {
	var running sync.WaitGroup
	defer running.Wait()
	places := fairshare.New[netip.Addr](fairshare.Config{Most: relayedMost, Part: relayedPart, Old: relayedOld})
	buffer := make([]byte, largestDatagram)
	for {
		n, client, err := socket.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // the kernel reports here that a client refused an earlier answer
			continue
		}
		asking, end := context.WithCancel(ctx)
		leave, ok := places.Take(client.Addr().Unmap(), end)
		if !ok {
			end()
			continue
		}
		// The next datagram overwrites the buffer while the question is still being answered.
		question := slices.Clone(buffer[:n])
		running.Go(func() {
			defer end()
			defer leave()
			answer := r.ask(asking, question)
			if asking.Err() != nil {
				return // another address has its place: it is dropped like those that never had one
			}
			if answer == nil {
				answer = failure(question)
			}
			if answer != nil {
				_, _ = socket.WriteToUDPAddrPort(answer, client) // datagrams may be lost
			}
		})
	}
}

// ask returns the first answer of the host's servers to a question, or nil if none answers. It waits at most
// the patience for each server. Its buffer is as large as any datagram, so relayedMost questions hold 16 MiB.
func (r *resolverRelay) ask(ctx context.Context, question []byte) []byte {
	answer := make([]byte, largestDatagram)
	for _, server := range r.servers() {
		n, err := r.exchange(ctx, server, question, answer)
		if err == nil {
			return answer[:n]
		}
		if ctx.Err() != nil {
			return nil
		}
		r.log.Debug("a DNS server does not answer", "server", server, "err", err)
	}
	return nil
}

// exchange sends a question to one server and reads the answer. The socket is connected, so only that server can
// answer, and the ID of the answer must be the question's.
func (r *resolverRelay) exchange(ctx context.Context, server netip.AddrPort, question, answer []byte) (int, error) {
	conn, err := r.dial(ctx, "udp", server.String())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(r.patience)); err != nil {
		return 0, err
	}
	if _, err := conn.Write(question); err != nil {
		return 0, err
	}
	for {
		n, err := conn.Read(answer)
		if err != nil {
			return 0, err
		}
		// An answer with another ID is a late one, to the question of an earlier socket with the same port.
		if n >= 2 && len(question) >= 2 && bytes.Equal(answer[:2], question[:2]) {
			return n, nil
		}
	}
}

// connect opens a stream to the first of the host's servers that accepts one.
func (r *resolverRelay) connect(ctx context.Context, network string) (net.Conn, error) {
	errs := []error{fmt.Errorf("%s names no DNS server that answers", r.conf)}
	for _, server := range r.servers() {
		conn, err := r.dial(ctx, network, server.String())
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// servers returns the servers that the host asks now, in its order. It leaves out the relay itself, which would ask
// itself for ever.
func (r *resolverRelay) servers() []netip.AddrPort {
	conf, err := host.ReadResolvConf(r.conf)
	if err != nil {
		r.log.Warn("cannot find the DNS servers of this machine", "err", err)
		return nil
	}
	var out []netip.AddrPort
	for _, a := range conf.Servers {
		if !slices.Contains(r.own, a) {
			out = append(out, netip.AddrPortFrom(a, dnsPort))
		}
	}
	return out
}

// failure returns the answer SERVFAIL, which tells the client at once that no server answered. It returns nil if the
// message is not a question: answering answers could go on for ever.
func failure(question []byte) []byte {
	var p dnsmessage.Parser
	header, err := p.Start(question)
	if err != nil || header.Response {
		return nil
	}
	asked, err := p.AllQuestions()
	if err != nil {
		return nil
	}
	header.Response, header.RecursionAvailable, header.RCode = true, true, dnsmessage.RCodeServerFailure
	answer, err := (&dnsmessage.Message{Header: header, Questions: asked}).Pack()
	if err != nil {
		return nil
	}
	return answer
}
