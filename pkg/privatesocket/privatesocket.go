// Package privatesocket makes Unix sockets to which only their owner can connect.
package privatesocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mode is that of the socket's file.
const mode = 0o600

// Listen makes a socket in place of one that a process left which is gone. Its directory may be one that others write,
// such as a node: nothing is done by the path that would reach what they put in its place.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove an old socket: %w", err)
	}
	// The file has the mode of the socket that it is made of. chmod(2) by the path would come too late, and follow a
	// link.
	c := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var failed error
		err := raw.Control(func(fd uintptr) { failed = unix.Fchmod(int(fd), mode) })
		return errors.Join(err, failed)
	}}
	l, err := c.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}
