// Package balancer spreads TCP connections over several API servers, as a load balancer before a highly available
// control plane does: it asks each whether it is ready, gives new connections to those that are, and ends the
// connections of one that is not any more, so that its clients find another at once.
package balancer

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"bonsai/pkg/connlimit"
)

const (
	// checkEvery is how often a backend is asked, checkTimeout how long it has for the answer, and failures how many
	// answers in a row must fail for it to be down. A machine without power or network fails sooner, by dialTimeout.
	// One that is only slow is given time: its clients would connect to another one all at once, and make that one
	// slow.
	checkEvery   = 500 * time.Millisecond
	checkTimeout = 5 * time.Second
	failures     = 2
	// dialTimeout is how long a backend may take to accept a connection before the next one is tried. The kernel
	// accepts for a program that is slow.
	dialTimeout = time.Second
	// maxConnections are carried at the same time, and maxPart of them from one address of another machine. Where there
	// is no room, one that has been silent for silent makes room: clients of an API server ping it more often.
	maxConnections = 10_000
	maxPart        = 2_500
	silent         = time.Minute
	// acceptAgain is how long it waits after a connection could not be accepted, as no file was left for it, for
	// example.
	acceptAgain = 100 * time.Millisecond
)

// Config says what is balanced.
type Config struct {
	// Listener takes the clients' connections. Run closes it.
	Listener net.Listener
	// Backends are host:port of each server.
	Backends []string
	// Changes gives the servers as they are from then on, at least one. Connections to those that stay go on. It may be
	// nil.
	Changes <-chan []string
	// Check asks a backend whether it is ready: nil if so.
	Check func(ctx context.Context, backend string) error
	Log   *slog.Logger
}

// Balancer carries connections. Make it with New.
type Balancer struct {
	cfg Config

	mu       sync.Mutex
	backends []*backend // replaced as a whole, so that whoever has read it keeps what was
}

// New checks cfg and returns a Balancer, which does nothing until Run.
func New(cfg Config) (*Balancer, error) {
	if cfg.Listener == nil || len(cfg.Backends) == 0 || cfg.Check == nil || cfg.Log == nil {
		return nil, errors.New("balancer: Listener, Backends, Check and Log are required")
	}
	return &Balancer{cfg: cfg, backends: changed(nil, cfg.Backends)}, nil
}

// now returns the backends at this moment.
func (b *Balancer) now() []*backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.backends
}

// Run carries connections until ctx ends, and returns when all have ended.
func (b *Balancer) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { b.keep(ctx) })
	stop := context.AfterFunc(ctx, func() { b.cfg.Listener.Close() })
	defer stop()
	limit := connlimit.New(connlimit.Config{Most: maxConnections, PerSource: maxPart, Silent: silent})
	for {
		client, err := b.cfg.Listener.Accept()
		if err != nil {
			switch {
			case ctx.Err() != nil:
				return nil
			case errors.Is(err, net.ErrClosed):
				return err
			}
			// The connections that there are must not end because one more is too many.
			b.cfg.Log.Warn("a connection was not accepted", "err", err)
			select {
			case <-time.After(acceptAgain):
			case <-ctx.Done():
				return nil
			}
			continue
		}
		leave, err := limit.Enter(client)
		if err != nil {
			b.cfg.Log.Debug("a connection is refused", "from", client.RemoteAddr(), "err", err)
			client.Close()
			continue
		}
		wg.Go(func() {
			defer leave()
			b.carry(ctx, client)
		})
	}
}

// keep asks each backend whether it is ready, as long as it is one, until ctx ends. It ends the connections of one that
// is none any more.
func (b *Balancer) keep(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	leave := map[*backend]func(){}
	begin := func(all []*backend) {
		for _, backend := range all {
			if leave[backend] != nil {
				continue
			}
			life, end := context.WithCancel(ctx)
			leave[backend] = func() { end(); backend.leave() }
			wg.Go(func() { b.watch(life, backend) })
		}
	}
	begin(b.now())
	for {
		select {
		case <-ctx.Done():
			for _, end := range leave {
				end()
			}
			return
		case addresses := <-b.cfg.Changes:
			before := b.now()
			now := changed(before, addresses)
			b.mu.Lock()
			b.backends = now
			b.mu.Unlock()
			begin(now)
			for _, backend := range before {
				if !slices.Contains(now, backend) {
					leave[backend]()
					delete(leave, backend)
				}
			}
			b.cfg.Log.Info("the backends have changed", "are", addresses)
		}
	}
}

// changed returns the backends of these addresses, the same for those that there were. An address that comes twice
// counts once: a machine may have joined again under another name.
func changed(before []*backend, addresses []string) []*backend {
	var now []*backend
	for _, address := range addresses {
		if slices.ContainsFunc(now, func(b *backend) bool { return b.address == address }) {
			continue
		}
		i := slices.IndexFunc(before, func(b *backend) bool { return b.address == address })
		if i < 0 {
			now = append(now, newBackend(address))
		} else {
			now = append(now, before[i])
		}
	}
	return now
}

// watch asks backend again and again whether it is ready.
func (b *Balancer) watch(ctx context.Context, backend *backend) {
	for {
		spare, began := b.anyUp(), time.Now()
		within, cancel := context.WithTimeout(ctx, checkTimeout)
		err := b.cfg.Check(within, backend.address)
		cancel()
		if ctx.Err() != nil {
			return
		}
		switch backend.checked(err == nil) {
		case wentDown:
			b.cfg.Log.Warn("a backend is down", "backend", backend.address, "err", err)
		case cameUp:
			b.cfg.Log.Info("a backend is up", "backend", backend.address)
		}
		if err != nil && spare {
			b.cutDown(backend)
		}
		select {
		case <-time.After(pause(time.Since(began), err == nil)):
		case <-ctx.Done():
			return
		}
	}
}

// pause returns how long after an answer, or none, a backend is asked again. One that is ready and slow is asked less
// often, as each question costs it a handshake and a read of etcd: the questions take no more than half of its time.
func pause(took time.Duration, ready bool) time.Duration {
	if !ready {
		return max(checkEvery-took, 0)
	}
	return max(checkEvery-took, took)
}

func (b *Balancer) anyUp() bool { return slices.ContainsFunc(b.now(), (*backend).isUp) }

// cutDown ends the connections of a backend that is down, if there is one that is up for their clients. If all are
// down, the fault is most likely none of theirs but that the machine is overloaded, and that clients connect again
// would make it worse. It follows a check of that very backend that began while another was up, and failed: one that
// failed before may be ready by now, as when several start together.
func (b *Balancer) cutDown(down *backend) {
	if !down.isUp() && b.anyUp() {
		down.cut()
	}
}

// carry connects client to a backend that takes it, and copies both ways until one side has ended.
func (b *Balancer) carry(ctx context.Context, client net.Conn) {
	defer client.Close()
	for _, backend := range order(b.now()) {
		dialer := net.Dialer{Timeout: dialTimeout}
		server, err := dialer.DialContext(ctx, "tcp", backend.address)
		if err != nil {
			b.cfg.Log.Debug("a backend takes no connection", "backend", backend.address, "err", err)
			continue
		}
		c := &carried{client: client, server: server}
		if !backend.begin(c) {
			server.Close()
			continue
		}
		c.copy()
		backend.end(c)
		server.Close()
		return
	}
	if ctx.Err() == nil {
		b.cfg.Log.Warn("no backend takes a connection")
	}
}
