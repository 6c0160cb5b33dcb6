package testenv

import (
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// reserve returns a port of loopback that nobody is given until the environment is stopped, but who asks for that one
// and shares it, as its programs do: a socket has it that does not listen. A port that was merely found free could be
// another's before the program listens there, and twenty environments that start at once find many.
func (e *Environment) reserve() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	e.reserved = append(e.reserved, os.NewFile(uintptr(fd), "port"))
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: netip.MustParseAddr(loopback).As4()}); err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("reserve a port: %w", err)
	}
	return address.(*unix.SockaddrInet4).Port, nil
}
