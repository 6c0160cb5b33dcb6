// Package reservedport reserves ports of the loopback for programs of tests.
package reservedport

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// Reserve returns a port of 127.0.0.1 that nobody is given until hold is closed, but who asks for that one and shares
// it (SO_REUSEPORT, --permit-port-sharing): a socket has it that does not listen. A port that was merely found free
// could be another's before the program listens there, and twenty servers that start at once find many.
func Reserve() (port int, hold *os.File, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("reserve a port: %w", err)
	}
	hold = os.NewFile(uintptr(fd), "port")
	if port, err = bind(fd); err != nil {
		return 0, nil, errors.Join(fmt.Errorf("reserve a port: %w", err), hold.Close())
	}
	return port, hold, nil
}

// bind binds a socket that may share its port to one that is free.
func bind(fd int) (port int, err error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: netip.MustParseAddr("127.0.0.1").As4()}); err != nil {
		return 0, err
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return 0, err
	}
	return address.(*unix.SockaddrInet4).Port, nil
}
