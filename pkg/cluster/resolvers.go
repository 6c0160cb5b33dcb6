package cluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"bonsai/pkg/cluster/plan"
)

const (
	dnsPort = 53
	// hostResolvConf names the DNS servers that this machine asks (resolv.conf(5)).
	hostResolvConf = "/etc/resolv.conf"
	// resolverPatience is how long one of them may take to answer before the next one is asked.
	resolverPatience = 2 * time.Second
	// relayedMost is how many questions may wait for an answer at a time; further ones are dropped, as UDP's may be.
	relayedMost = 256
)

// resolverRelay answers DNS for nodes and pods at the host's address on the node network, by asking the servers that the host asks. These may
// be on the host's loopback, where no pod reaches them (dnsmasq, unbound, systemd-resolved), may change, and may come when the cluster
// already runs: /etc/resolv.conf is read for each question.
type resolverRelay struct {
	conf string
	own  []netip.Addr // the relay's own addresses, which it must not ask
	log  *slog.Logger
	// dial connects a socket, and exchanges nothing yet.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// relayDNS starts the relay at the host's address on the node network; wait returns when it has ended, after ctx. Where something else has the
// port already, as a DNS server that listens at all addresses does, nodes and pods ask that.
func relayDNS(ctx context.Context, c plan.Config, log *slog.Logger) (wait func(), err error) {
	dialer := net.Dialer{Timeout: resolverPatience}
	r := &resolverRelay{conf: hostResolvConf, own: c.Networks().HostIPs(), log: log, dial: dialer.DialContext}
	at := netip.AddrPortFrom(c.Networks().HostIP(), dnsPort)
	wait, err = r.serve(ctx, at)
	if errors.Is(err, syscall.EADDRINUSE) {
		log.Info("nodes ask the DNS server that is there already", "address", at)
		return func() {}, nil
	}
	return wait, err
}

func (r *resolverRelay) serve(ctx context.Context, at netip.AddrPort) (wait func(), err error) {
	socket, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, fmt.Errorf("answer DNS for nodes: %w", err)
	}
	streams := newPublisher(r.log)
	streams.dial = func(ctx context.Context, network, _ string) (net.Conn, error) { return r.connect(ctx, network) }
	streams.leadTo([]netip.Addr{at.Addr()}) // one place to lead to, wherever connect finds it
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

// serveUDP answers questions until the socket is closed, and returns when the last one has its answer.
func (r *resolverRelay) serveUDP(ctx context.Context, socket *net.UDPConn) {
	var running sync.WaitGroup
	defer running.Wait()
	places := make(chan struct{}, relayedMost)
	buffer := make([]byte, largestDatagram)
	for {
		n, client, err := socket.ReadFromUDPAddrPort(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // of an answer that a client refused
			continue
		}
		select {
		case places <- struct{}{}:
		default:
			continue
		}
		question := slices.Clone(buffer[:n])
		running.Go(func() {
			defer func() { <-places }()
			answer := r.ask(ctx, question)
			if answer == nil {
				answer = failure(question)
			}
			if answer != nil {
				_, _ = socket.WriteToUDPAddrPort(answer, client) // datagrams may be lost
			}
		})
	}
}

// ask returns the first answer of the host's servers to a question; nil if none answers.
func (r *resolverRelay) ask(ctx context.Context, question []byte) []byte {
	answer := make([]byte, largestDatagram)
	for _, server := range r.servers() {
		n, err := r.exchange(ctx, server, question, answer)
		if err == nil {
			return answer[:n]
		}
		r.log.Debug("a DNS server does not answer", "server", server, "err", err)
	}
	return nil
}

func (r *resolverRelay) exchange(ctx context.Context, server netip.AddrPort, question, answer []byte) (int, error) {
	conn, err := r.dial(ctx, "udp", server.String())
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(resolverPatience)); err != nil {
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
		if n >= 2 && len(question) >= 2 && bytes.Equal(answer[:2], question[:2]) { // else an answer to somebody else's question
			return n, nil
		}
	}
}

// connect opens a stream to the first of the host's servers that takes one.
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

// servers are those that the host asks now, in its order.
func (r *resolverRelay) servers() []netip.AddrPort {
	conf, err := readResolvConf(r.conf)
	if err != nil {
		r.log.Warn("cannot find the DNS servers of this machine", "err", err)
		return nil
	}
	var out []netip.AddrPort
	for _, a := range conf.servers {
		if !slices.Contains(r.own, a) {
			out = append(out, netip.AddrPortFrom(a, dnsPort))
		}
	}
	return out
}

// failure is the answer that no server could be asked (SERVFAIL), nil to what is no question.
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

// resolvConf is what a resolv.conf says.
type resolvConf struct {
	servers []netip.Addr
	// rest are its other lines: search lists and options.
	rest []string
}

// readResolvConf reads a resolv.conf. One that is not there says nothing.
func readResolvConf(path string) (resolvConf, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return resolvConf{}, nil
	}
	if err != nil {
		return resolvConf{}, err
	}
	defer f.Close()
	var conf resolvConf
	lines := bufio.NewScanner(io.LimitReader(f, 1<<20))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0][0] == '#' || fields[0][0] == ';' {
			continue
		}
		if fields[0] != "nameserver" {
			conf.rest = append(conf.rest, lines.Text())
			continue
		}
		if len(fields) > 1 {
			if a, err := netip.ParseAddr(fields[1]); err == nil { // glibc passes over others, too
				conf.servers = append(conf.servers, a)
			}
		}
	}
	if err := lines.Err(); err != nil {
		return conf, fmt.Errorf("read %s: %w", path, err)
	}
	return conf, nil
}

// NoResolvers reports whether this machine has no DNS server to ask now, though pods may ask it.
func NoResolvers(c plan.Config) bool {
	conf, err := readResolvConf(hostResolvConf)
	return c.Egress && c.Joined == nil && err == nil && len(conf.servers) == 0
}
