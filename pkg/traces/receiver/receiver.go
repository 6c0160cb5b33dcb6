// Package receiver takes spans by OTLP over gRPC (opentelemetry.proto.collector.trace.v1.TraceService) on a socket.
//
// Its senders are components of the cluster, and programs that a user configured. One of them may be broken: it may
// send much, slowly, or nonsense. Whatever it does, the receiver's memory is bounded, other senders are served, and
// what it keeps can be shown on a terminal.
package receiver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // OTLP asks servers to take it
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/encoding/protowire"

	"bonsai/pkg/privatesocket"
	"bonsai/pkg/retryinfo"
	"bonsai/pkg/traces"
)

const (
	// MaxMessage bounds a message, in bytes, unpacked. It is gRPC's usual bound, which exporters keep.
	MaxMessage = 4 << 20
	// maxConnections is how many senders there may be: up to nine nodes with two or three programs each, three control
	// planes, and some more. One that comes beyond that is closed, and tries again.
	maxConnections = 128
	// maxRequests is how many messages are read at once, so that MaxMessage of each are the most that there is;
	// nodeRequests, of one node. A sender that is refused tries again: Unavailable says so in OTLP.
	maxRequests  = 8
	nodeRequests = 2
	// perConnection leaves room for other senders. Exporters send one message after the other.
	perConnection = 2
	// requestTimeout is how long a sender may take for its message: one that stops in the middle must not hold its
	// place.
	requestTimeout = 10 * time.Second
	// maxAhead is how far a sender's clock may be ahead of ours. A span of the year 2200 would be among the newest and
	// the longest of all lists for as long as it is kept.
	maxAhead = time.Hour
	// idleTimeout closes a connection without messages.
	idleTimeout = 10 * time.Minute
)

// Receiver listens on Socket.
type Receiver struct {
	// Socket is the path of the socket. Its directory is made, and may be entered by its owner alone.
	Socket string
	// Node, if set, is the node whose programs send to this socket: all spans are taken for that node's, whatever they
	// say, fewer senders are served at once, and what they send is bounded in time.
	Node string
	// Keep takes a span, which is valid until it returns, and says why it is not kept.
	Keep func(*traces.Record) traces.Reason
	// Relay, if set, takes whole messages in place of Keep, and answers as the sender is to be answered.
	Relay func(ctx context.Context, message []byte) (answer []byte, err error)
	// Nodes bounds what nodes send. Without a node, and with a Relay, it is not needed.
	Nodes *Nodes
	Log   *slog.Logger

	timeout                                        time.Duration // of tests; 0 is requestTimeout
	requests                                       atomic.Int64
	received, messages, refused, broken, throttled atomic.Uint64

	mu      sync.Mutex
	dropped map[traces.Reason]uint64
}

// Stats are figures for metrics.
type Stats struct {
	// Received are all spans of the Messages that were read. Broken are messages that could not be read to their end,
	// Refused messages and connections for which there was no room, Throttled messages that came too soon.
	Received, Messages, Broken, Refused, Throttled uint64
	// Dropped are the spans that were not kept.
	Dropped map[traces.Reason]uint64
}

// Stats returns the figures of this moment.
func (r *Receiver) Stats() Stats {
	r.mu.Lock()
	dropped := maps.Clone(r.dropped)
	r.mu.Unlock()
	return Stats{Received: r.received.Load(), Messages: r.messages.Load(), Broken: r.broken.Load(),
		Refused: r.refused.Load(), Throttled: r.throttled.Load(), Dropped: dropped}
}

// Listen makes the socket, in place of one that a process left which is gone.
func (r *Receiver) Listen(ctx context.Context) (net.Listener, error) {
	dir := filepath.Dir(r.Socket)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the socket: %w", err)
	}
	// It may have been there. Whoever can enter it can send.
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("close the directory of the socket: %w", err)
	}
	return privatesocket.Listen(ctx, r.Socket)
}

// Serve takes spans from a listener, which it closes, until ctx ends.
func (r *Receiver) Serve(ctx context.Context, l net.Listener) error {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxConcurrentStreams(perConnection), grpc.MaxHeaderListSize(16<<10),
		grpc.ConnectionTimeout(requestTimeout), grpc.InTapHandle(r.enter), grpc.ForceServerCodecV2(raw{}),
		grpc.ReadBufferSize(8<<10), grpc.WriteBufferSize(4<<10), grpc.SharedWriteBuffer(true),
		grpc.StaticStreamWindowSize(64<<10), grpc.StaticConnWindowSize(128<<10),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout, Time: time.Minute,
			Timeout: requestTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second,
			PermitWithoutStream: true}),
	)
	server.RegisterService(r.service(), nil)
	in := &limited{Listener: l, refused: &r.refused, conns: map[*counted]struct{}{}}
	done := make(chan error, 1)
	go func() { done <- server.Serve(in) }()
	select {
	case err := <-done:
		return fmt.Errorf("take spans on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	l.Close()
	in.closeAll()
	server.Stop() // senders keep what was not acknowledged, for a while
	<-done
	return nil
}

// enter lets a call begin if there is room, and bounds its time, the reading of its message included.
func (r *Receiver) enter(ctx context.Context, _ *tap.Info) (context.Context, error) {
	most := int64(maxRequests)
	if r.Node != "" {
		most = nodeRequests
	}
	if r.requests.Add(1) > most {
		r.requests.Add(-1)
		r.refused.Add(1)
		return nil, status.Error(codes.Unavailable, "too many messages at once, try again")
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(r.timeout, requestTimeout))
	context.AfterFunc(ctx, func() { // ctx ends with the call, if not before
		cancel()
		r.requests.Add(-1)
	})
	return ctx, nil
}

// service is the one method of OTLP. It is described here and not by generated stubs, because messages are read by
// Decode.
func (r *Receiver) service() *grpc.ServiceDesc {
	export := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var message []byte
		if err := decode(&message); err != nil {
			return nil, err
		}
		if r.Relay != nil {
			return r.Relay(ctx, message)
		}
		answer, err := r.take(r.Node, message)
		return answer, asStatus(err)
	}
	return &grpc.ServiceDesc{ServiceName: "opentelemetry.proto.collector.trace.v1.TraceService",
		HandlerType: (*any)(nil), Methods: []grpc.MethodDesc{{MethodName: "Export", Handler: export}}}
}

// asStatus is an error of take as OTLP over gRPC says it.
func asStatus(err error) error {
	if err == nil {
		return nil
	}
	early, ok := errors.AsType[*tooFastError](err)
	if !ok {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	return retryinfo.Error(early.Error(), early.wait)
}

// take keeps the spans of a message that a node sent, or the control plane, for which node is "". The answer says how
// many it did not keep, which a sender must not repeat. The error is a tooFastError, or the message's fault.
func (r *Receiver) take(node string, message []byte) ([]byte, error) {
	if wait := r.Nodes.wait(node, len(message)); wait > 0 {
		r.throttled.Add(1)
		return nil, &tooFastError{wait}
	}
	r.messages.Add(1)
	rejected, why := uint64(0), traces.Kept
	drop := func(reason traces.Reason) {
		if reason == traces.Kept {
			return
		}
		r.count(reason)
		if reason != traces.Duplicate { // what is kept already is no loss
			rejected, why = rejected+1, reason
		}
	}
	err := Decode(message, func(span *traces.Record) {
		r.received.Add(1)
		if span.End > time.Now().Add(maxAhead).UnixNano() {
			drop(traces.Invalid)
			return
		}
		if node != "" {
			if ofControlPlane(span) {
				drop(traces.Foreign)
				return
			}
			span.Instance, span.Sender = node, node
		}
		drop(r.Keep(span))
	}, func(reason traces.Reason) {
		r.received.Add(1)
		drop(reason)
	})
	if err != nil {
		r.broken.Add(1)
		return nil, err
	}
	if rejected == 0 {
		return nil, nil
	}
	r.Log.Debug("dropped spans of a message", "spans", rejected, "reason", why)
	// ExportTraceServiceResponse: partial_success with rejected_spans and error_message.
	partial := protowire.AppendTag(nil, 1, protowire.VarintType)
	partial = protowire.AppendVarint(partial, rejected)
	partial = protowire.AppendTag(partial, 2, protowire.BytesType)
	partial = protowire.AppendString(partial, "spans were dropped: "+string(why))
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial), nil
}

// controlPlane are the components that send their spans by the socket of the control plane, with how the names of their
// spans begin.
var controlPlane = map[string]string{"kube-apiserver": "apiserver.", "kube-scheduler": "scheduler.",
	"kube-controller-manager": "kube-controller-manager."}

// ofControlPlane reports whether a span claims to be one of the control plane: by it a node could tell the story of an
// object that is none of its own.
func ofControlPlane(span *traces.Record) bool {
	for component, names := range controlPlane {
		if span.Component == component || span.Object != nil && strings.HasPrefix(span.Name, names) {
			return true
		}
	}
	return false
}

// count counts a span that was not kept.
func (r *Receiver) count(why traces.Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dropped == nil {
		r.dropped = map[traces.Reason]uint64{}
	}
	r.dropped[why]++
}

// raw hands messages through as bytes.
type raw struct{}

var _ encoding.CodecV2 = raw{}

// Marshal implements encoding.CodecV2.
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Name implements encoding.CodecV2.
func (raw) Name() string { return "proto" }

// limited closes connections beyond maxConnections. It does not make them wait: who waits, waits for broken senders.
type limited struct {
	net.Listener
	refused *atomic.Uint64

	mu    sync.Mutex
	conns map[*counted]struct{}
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &counted{Conn: conn, in: l}
		if l.enter(c) {
			return c, nil
		}
		l.refused.Add(1)
		conn.Close()
	}
}

// enter reports whether there is room for a connection, which then has it.
func (l *limited) enter(c *counted) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.conns) >= maxConnections {
		return false
	}
	l.conns[c] = struct{}{}
	return true
}

func (l *limited) leave(c *counted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// closeAll ends all connections. A gRPC server that stops waits for those that have not said anything yet.
func (l *limited) closeAll() {
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.conns))
	l.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
}

// counted is a connection that makes room when it is closed.
type counted struct {
	net.Conn
	in *limited
}

// Close implements net.Conn.
func (c *counted) Close() error {
	c.in.leave(c)
	return c.Conn.Close()
}
