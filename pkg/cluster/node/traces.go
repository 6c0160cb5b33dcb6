package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/tracestore"
	"bonsai/pkg/connlimit"
)

// How many connections to the API of traces a node carries, in all and from one address; when one that says nothing
// makes room; and how long the process may take to accept one.
const (
	tracesConnections = 256
	tracesPerSource   = 64
	tracesSilent      = time.Minute
	tracesDial        = 5 * time.Second
	tracesAgain       = 100 * time.Millisecond
)

// tracesDoor leads from a port of the node to the socket of the process that keeps the cluster's traces, which is on
// the host. It carries bytes: TLS and the authentication are between the two ends.
type tracesDoor struct {
	listener net.Listener
	socket   string
	log      *slog.Logger
}

// openTraces listens at the node's addresses.
func openTraces(n *Config, log *slog.Logger) (*tracesDoor, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(tracestore.Port)))
	if err != nil {
		return nil, fmt.Errorf("listen for the API of traces: %w", err)
	}
	return &tracesDoor{listener: l, socket: plan.Layout(n.DataDir).NodeTracesSocket(n.Name), log: log}, nil
}

// serve carries connections until ctx ends.
func (d *tracesDoor) serve(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	defer context.AfterFunc(ctx, func() { d.listener.Close() })()
	limit := connlimit.New(connlimit.Config{Most: tracesConnections, PerSource: tracesPerSource, Silent: tracesSilent})
	for {
		conn, err := d.listener.Accept()
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
			if conn != nil {
				conn.Close()
			}
			return
		}
		if err != nil { // too many open files, for one
			d.log.Warn("cannot accept a connection to the API of traces", "err", err)
			select {
			case <-time.After(tracesAgain):
			case <-ctx.Done():
			}
			continue
		}
		leave, err := limit.Enter(conn)
		if err != nil {
			d.log.Debug("a connection to the API of traces is refused", "from", conn.RemoteAddr(), "err", err)
			conn.Close()
			continue
		}
		running.Go(func() {
			defer leave()
			d.carry(ctx, conn)
		})
	}
}

// carry copies in both directions until either side or ctx ends.
func (d *tracesDoor) carry(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	process, err := (&net.Dialer{Timeout: tracesDial}).DialContext(ctx, "unix", d.socket)
	if err != nil {
		d.log.Debug("bonsai-traces does not answer", "err", err)
		return
	}
	defer process.Close()
	defer context.AfterFunc(ctx, func() { conn.Close(); process.Close() })()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{conn, process}, {process, conn}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // whoever breaks off, the other end sees
			conn.Close()
			process.Close()
		})
	}
	both.Wait()
}
