package cm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"

	"google.golang.org/grpc"
)

// Bounds on requests at the kubelet's sockets, which any pod with the right hostPath can reach: bytes of a request, and
// requests of one connection at a time.
const (
	maxRequest = 64 << 10
	maxCalls   = 16
)

// Serve answers gRPC at a socket until ctx ends. It replaces a socket that an earlier kubelet left.
func Serve(ctx context.Context, path string, register func(*grpc.Server), o ...grpc.ServerOption) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of an earlier time: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("listen at a socket: %w", err)
	}
	s := grpc.NewServer(append(o, grpc.MaxRecvMsgSize(maxRequest), grpc.MaxConcurrentStreams(maxCalls))...)
	register(s)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	select {
	case <-ctx.Done():
		s.Stop()
		return <-served
	case err := <-served:
		return err
	}
}
