package selector

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"sigs.k8s.io/apiserver-network-proxy/konnectivity-client/pkg/client"
	pb "sigs.k8s.io/apiserver-network-proxy/konnectivity-client/proto/client"

	"bonsai/pkg/safetext"
)

// farewell is how long a closed connection may take to say so to its proxy. Then its tunnel is cut.
const farewell = 2 * time.Second

// tunnel opens a connection through a konnectivity server, by a gRPC stream of its own, which ends with it.
func (p *proxy) tunnel(ctx context.Context, _, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	life, end := context.WithCancelCause(context.WithoutCancel(ctx)) // the connection outlives the dial
	stop := context.AfterFunc(ctx, func() { end(nil) })              // but the dial's end is that of a half-open one
	dialed := make(chan struct{})
	defer close(dialed)
	through, err := client.CreateSingleUseGrpcTunnelWithContext(ctx, life, "passthrough:///"+p.name,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a socket of this machine
		grpc.WithAuthority("localhost"), grpc.WithMaxHeaderListSize(maxAnswer),
		grpc.WithStreamInterceptor(gate(dialed, end)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return p.connect(ctx) }))
	if err != nil {
		end(nil)
		return nil, p.unreachable(because(ctx, safetext.Status(err)))
	}
	conn, err := through.DialContext(ctx, "tcp", addr)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		if why := context.Cause(life); why != nil && ctx.Err() == nil { // the library says that the tunnel is closed
			err = why
		}
		end(nil)
		return nil, p.refused(addr, because(ctx, err))
	}
	return newTunnelled(conn, addr, func() { end(nil) }, func() error { return context.Cause(life) }), nil
}

// gate checks the packets of a tunnel, and ends it because of those that no proxy may send. It also holds back what
// follows the answer to the dial until that has returned. The library would take bytes that come before for those of an
// unknown connection, and close it: the other side may be the first to speak, as etcd without TLS is.
func gate(dialed <-chan struct{}, end context.CancelCauseFunc) grpc.StreamClientInterceptor {
	return func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, open grpc.Streamer,
		o ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := open(ctx, d, c, method, o...)
		if err != nil {
			return nil, err
		}
		return &gated{ClientStream: s, dialed: dialed, end: end}, nil
	}
}

type gated struct {
	grpc.ClientStream
	dialed  <-chan struct{}
	end     context.CancelCauseFunc
	packets packets
}

// SendMsg implements grpc.ClientStream.
func (g *gated) SendMsg(m any) error {
	if p, ok := m.(*pb.Packet); ok {
		g.packets.sent(p)
	}
	if err := g.ClientStream.SendMsg(m); err != io.EOF { //nolint:errorlint // gRPC's own: RecvMsg says why
		return safetext.Status(err)
	}
	return io.EOF
}

// RecvMsg implements grpc.ClientStream. The library calls it from one goroutine.
func (g *gated) RecvMsg(m any) error {
	if g.packets.over {
		select {
		case <-g.dialed:
		case <-g.Context().Done(): // which RecvMsg reports
		}
	}
	for {
		err := g.ClientStream.RecvMsg(m)
		if err == io.EOF { //nolint:errorlint // the library compares
			return err
		}
		pass := false
		if p, ok := m.(*pb.Packet); err == nil && ok {
			pass, err = g.packets.received(p)
		}
		if err != nil {
			err = safetext.Status(err)
			g.end(err)
		}
		if pass || err != nil {
			return err
		}
	}
}

// because names the end of a dial as the reason of its failure, where it is.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// tunnelled is a connection through a tunnel. The library's own has no deadlines and no addresses, and its Close waits
// for the proxy. So callers get one end of a pipe, and two goroutines copy between the other end and the tunnel.
type tunnelled struct {
	net.Conn
	to  address
	end func()
	why func() error // the tunnel has ended
}

func newTunnelled(inner net.Conn, addr string, end func(), why func() error) *tunnelled {
	near, far := net.Pipe()
	var both sync.WaitGroup
	both.Go(func() {
		// Ends with the caller's Close, with that of the other side, or with the tunnel.
		_, _ = io.Copy(inner, far)
		cut := time.AfterFunc(farewell, end)
		_ = inner.Close()
		cut.Stop()
		end()
	})
	both.Go(func() {
		_, _ = io.Copy(far, inner)
		_ = far.Close()
	})
	return &tunnelled{Conn: near, to: address(addr), end: end, why: why}
}

// Read implements net.Conn. What a proxy cut by breaking the protocol does not look complete.
func (t *tunnelled) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if cause := t.why(); err == io.EOF && isBroken(cause) { //nolint:errorlint // the pipe's own
		err = cause
	}
	return n, err
}

// Close implements net.Conn. It does not wait for the proxy.
func (t *tunnelled) Close() error {
	time.AfterFunc(farewell, t.end) // also if the proxy takes no more bytes
	return t.Conn.Close()
}

// LocalAddr implements net.Conn. No address of this machine belongs to the connection.
func (t *tunnelled) LocalAddr() net.Addr { return address("tunnel") }

// RemoteAddr implements net.Conn.
func (t *tunnelled) RemoteAddr() net.Addr { return t.to }

// address is host:port of a connection through a tunnel.
type address string

// Network implements net.Addr.
func (address) Network() string { return "tcp" }

// String implements net.Addr.
func (a address) String() string { return string(a) }
