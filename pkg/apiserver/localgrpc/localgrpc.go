// Package localgrpc calls plug-ins that listen on a Unix socket of this machine with gRPC. It bounds how long a call
// takes, how many are under way, and how large an answer is.
package localgrpc

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"bonsai/pkg/safetext"
)

// maxHeader bounds the header and the trailer of an answer, in bytes: a plug-in says in them why a call failed.
const maxHeader = 64 << 10

// Config is one plug-in. All fields are required.
type Config struct {
	// Name is the plug-in in errors, such as "KMS plug-in".
	Name string
	// Socket is its path; "@name" is an abstract socket.
	Socket string
	// Timeout bounds a call, with the time that it waits for the plug-in.
	Timeout time.Duration
	// MaxAnswer bounds an answer in bytes, MaxCalls the calls that are under way.
	MaxAnswer, MaxCalls int
}

// Conn is a connection to a plug-in, which is made again whenever it has been lost.
type Conn struct {
	*grpc.ClientConn
	cfg   Config
	calls chan struct{}
}

// Dial returns the connection. It does not wait for the plug-in: calls do.
func Dial(cfg Config) (*Conn, error) {
	conn, err := grpc.NewClient("passthrough:///"+cfg.Socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a socket of this machine, as Kubernetes defines it
		grpc.WithAuthority("localhost"), grpc.WithMaxHeaderListSize(maxHeader),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", cfg.Socket)
		}),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 3 * time.Second,
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: time.Second}}),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(cfg.MaxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("connect to the %s at %s: %w", cfg.Name, cfg.Socket, err)
	}
	return &Conn{ClientConn: conn, cfg: cfg, calls: make(chan struct{}, cfg.MaxCalls)}, nil
}

// Call makes one call, within the timeout. What the plug-in says in an error is bounded.
func (c *Conn) Call(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	select {
	case c.calls <- struct{}{}:
		defer func() { <-c.calls }()
	case <-ctx.Done():
		return fmt.Errorf("%d calls to the %s are under way: %w", c.cfg.MaxCalls, c.cfg.Name, ctx.Err())
	}
	return safetext.Status(do(ctx))
}
