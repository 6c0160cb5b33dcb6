package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"bonsai/pkg/privatesocket"
)

// Dir is where a user's own namespaces show the directory that they share with the outside.
const Dir = "/run/bonsai-rootless"

// Name is the name of the door in that directory.
const Name = "door"

// IsInside reports whether this process runs in a user's own namespaces. Nodes and pods have a /run of their own, and
// find no door there.
func IsInside() bool {
	_, err := os.Stat(filepath.Join(Dir, Name))
	return err == nil
}

// request asks for a socket. network is tcp4, tcp6 or udp4, as in package net.
type request struct{ Network, Address string }

// answer comes with the socket, or says why there is none.
type answer struct {
	Errno syscall.Errno `json:",omitempty"`
	Error string        `json:",omitempty"`
}

// longest bounds a request and an answer, in bytes.
const longest = 4 << 10

// Listen listens at a TCP address of the machine.
func Listen(network, address string) (net.Listener, error) {
	if !IsInside() {
		return net.Listen(network, address)
	}
	f, err := ask(filepath.Join(Dir, Name), request{network, address})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return net.FileListener(f) // which has a copy
}

// ListenUDP listens at a UDP address of the machine.
func ListenUDP(network string, at *net.UDPAddr) (*net.UDPConn, error) {
	if !IsInside() {
		return net.ListenUDP(network, at)
	}
	f, err := ask(filepath.Join(Dir, Name), request{network, at.String()})
	if err != nil {
		return nil, err
	}
	defer f.Close()
	conn, err := net.FilePacketConn(f)
	if err != nil {
		return nil, err
	}
	socket, ok := conn.(*net.UDPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the door gave a %T for %s", conn, network), conn.Close())
	}
	return socket, nil
}

// UntilClosed returns a context that ends with ctx, and with the process that keeps the door: without that, the
// namespaces have no way to the network.
func UntilClosed(ctx context.Context, path string) (context.Context, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("find the process that keeps the namespaces: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	context.AfterFunc(ctx, func() { conn.Close() })
	go func() {
		_, err := conn.Read(make([]byte, 1)) // the other side says nothing unasked
		cancel(fmt.Errorf("the process that keeps the namespaces has ended: %w", err))
	}()
	return ctx, nil
}

// ask asks the door at path for a socket.
func ask(path string, r request) (*os.File, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("ask for %s %s: %w", r.Network, r.Address, err)
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(r); err != nil {
		return nil, fmt.Errorf("ask for %s %s: %w", r.Network, r.Address, err)
	}
	text, rights := make([]byte, longest), make([]byte, unix.CmsgSpace(4))
	n, most, _, _, err := conn.ReadMsgUnix(text, rights)
	if err != nil {
		return nil, fmt.Errorf("ask for %s %s: %w", r.Network, r.Address, err)
	}
	file, err := received(rights[:most])
	if err != nil {
		return nil, err
	}
	var a answer
	if err := json.Unmarshal(text[:n], &a); err != nil {
		return nil, errors.Join(fmt.Errorf("read the door's answer: %w", err), closed(file))
	}
	if a.Errno != 0 {
		return nil, &net.OpError{Op: "listen", Net: r.Network, Err: fmt.Errorf("%s: %w", r.Address, a.Errno)}
	}
	if a.Error != "" || file == nil {
		return nil, errors.Join(fmt.Errorf("listen %s %s: %s", r.Network, r.Address, a.Error), closed(file))
	}
	return file, nil
}

// received returns the file in a control message, or nil if there is none.
func received(control []byte) (*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return nil, err
	}
	unix.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "socket"), nil
}

// closed closes a file that may be nil.
func closed(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// Door listens for those inside.
type Door struct{ l *net.UnixListener }

// Open makes a door at path: from then on IsInside is true where path is shown, and requests wait for Serve.
func Open(ctx context.Context, path string) (*Door, error) {
	l, err := privatesocket.Listen(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("make a door: %w", err)
	}
	return &Door{l.(*net.UnixListener)}, nil
}

// Serve answers until ctx ends, and closes the door: it listens wherever it is asked to, with the rights of this
// process. It answers processes of this process's user alone.
func (d *Door) Serve(ctx context.Context) error {
	context.AfterFunc(ctx, func() { d.l.Close() })
	for {
		conn, err := d.l.AcceptUnix()
		switch {
		case err == nil:
			go serve(ctx, conn) // which closes the connection even if ctx has ended meanwhile
		case ctx.Err() != nil:
			return nil
		default:
			return errors.Join(fmt.Errorf("answer at the door: %w", err), d.l.Close())
		}
	}
}

// serve answers the requests of one connection, one after the other, until it is closed.
func serve(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if !isOwn(conn) {
		return
	}
	requests := json.NewDecoder(io.LimitReader(conn, longest))
	for {
		var r request
		if requests.Decode(&r) != nil {
			return
		}
		socket, err := listen(ctx, r)
		a, rights := answer{}, []byte(nil)
		if err != nil {
			a.Error = err.Error()
			errors.As(err, &a.Errno)
		} else {
			rights = unix.UnixRights(int(socket.Fd()))
		}
		text, err := json.Marshal(a)
		if err == nil {
			_, _, err = conn.WriteMsgUnix(text, rights, nil)
		}
		if errors.Join(err, closed(socket)) != nil {
			return
		}
	}
}

// isOwn reports whether the process at the other end has this process's user.
func isOwn(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	own := false
	err = raw.Control(func(fd uintptr) {
		peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		own = err == nil && int(peer.Uid) == os.Geteuid()
	})
	return err == nil && own
}

// listen opens a socket, and returns it as a file.
func listen(ctx context.Context, r request) (*os.File, error) {
	var config net.ListenConfig
	var opened interface {
		io.Closer
		File() (*os.File, error)
	}
	switch r.Network {
	case "tcp4", "tcp6":
		l, err := config.Listen(ctx, r.Network, r.Address)
		if err != nil {
			return nil, err
		}
		opened = l.(*net.TCPListener)
	case "udp4":
		l, err := config.ListenPacket(ctx, r.Network, r.Address)
		if err != nil {
			return nil, err
		}
		opened = l.(*net.UDPConn)
	default:
		return nil, fmt.Errorf("the network %q is none of tcp4, tcp6 and udp4", r.Network)
	}
	f, err := opened.File()
	return f, errors.Join(err, opened.Close()) // the file is a copy
}
