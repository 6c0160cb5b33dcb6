package cm

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"bonsai/pkg/privatesocket"
)

// Bounds on requests at the kubelet's sockets, which any pod with the right hostPath can reach: bytes of a request,
// requests of one connection at a time, connections of all, and how long one may be open without a request. An agent
// that forgets its connections must not take the kubelet's file descriptors.
const (
	maxRequest = 64 << 10
	maxCalls   = 16
	maxConns   = 128
	maxIdle    = 10 * time.Minute
)

// Requests that ServeLimited answers each second, and at once; as upstream at the socket of pod resources.
const (
	perSecond = 100
	burst     = 10
)

// ServeLimited is Serve for sockets that agents ask about pods: of all of them together it answers a bounded number of
// requests in a second, and refuses the others. The beginning of a stream is a request as well.
func ServeLimited(ctx context.Context, path string, register func(*grpc.Server), o ...grpc.ServerOption) error {
	limit := rate.NewLimiter(perSecond, burst)
	refuse := func() error {
		if limit.Allow() {
			return nil
		}
		return status.Error(codes.ResourceExhausted, "rejected by rate limit")
	}
	unary := func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		if err := refuse(); err != nil {
			return nil, err
		}
		return next(ctx, q)
	}
	stream := func(s any, to grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		if err := refuse(); err != nil {
			return err
		}
		return next(s, to)
	}
	return Serve(ctx, path, register, append(o, grpc.UnaryInterceptor(unary), grpc.StreamInterceptor(stream))...)
}

// Serve answers gRPC at a socket, to which only root can connect, until ctx ends. It replaces a socket that an earlier
// kubelet left.
func Serve(ctx context.Context, path string, register func(*grpc.Server), o ...grpc.ServerOption) error {
	l, err := privatesocket.Listen(ctx, path)
	if err != nil {
		return err
	}
	s := grpc.NewServer(append(o, grpc.MaxRecvMsgSize(maxRequest), grpc.MaxConcurrentStreams(maxCalls),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxIdle}))...)
	register(s)
	served := make(chan error, 1)
	go func() { served <- s.Serve(&bounded{Listener: l}) }()
	select {
	case <-ctx.Done():
		s.Stop()
		return <-served
	case err := <-served:
		return err
	}
}

// bounded is a listener that closes connections beyond maxConns.
type bounded struct {
	net.Listener
	open atomic.Int32
}

// Accept implements net.Listener.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if b.open.Add(1) <= maxConns {
			return &counted{Conn: conn, left: sync.OnceFunc(func() { b.open.Add(-1) })}, nil
		}
		b.open.Add(-1)
		_ = conn.Close() // the client learns that it is closed either way
	}
}

// counted is a connection that gives its place back when it is closed.
type counted struct {
	net.Conn
	left func()
}

// Close implements net.Conn.
func (c *counted) Close() error {
	defer c.left()
	return c.Conn.Close()
}
