package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// namespace is a network namespace of a test, deleted with it.
type namespace struct {
	t    *testing.T
	name string
	file *os.File
}

// counter keeps the names of concurrent tests apart.
var counter atomic.Int32

// newNamespace makes a namespace, or skips the test where that is not possible.
func newNamespace(t *testing.T, label string) *namespace {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root for network namespaces")
	}
	for _, tool := range []string{"nft", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: needs %s: %v", tool, err)
		}
	}
	n := &namespace{t: t, name: fmt.Sprintf("proxytest-%d-%d-%s", os.Getpid(), counter.Add(1), label)}
	command(t, "ip", "netns", "add", n.name)
	t.Cleanup(func() { command(t, "ip", "netns", "del", n.name) })
	f, err := os.Open("/run/netns/" + n.name)
	if err != nil {
		t.Fatal(err)
	}
	n.file = f
	t.Cleanup(func() { f.Close() })
	n.ip("link", "set", "lo", "up")
	return n
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (n *namespace) ip(args ...string) string {
	n.t.Helper()
	return command(n.t, "ip", append([]string{"-n", n.name}, args...)...)
}

func (n *namespace) run(args ...string) string {
	n.t.Helper()
	return command(n.t, "ip", append([]string{"netns", "exec", n.name}, args...)...)
}

// do calls f on a thread in the namespace. The thread is not used again.
func (n *namespace) do(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err := unix.Setns(int(n.file.Fd()), unix.CLONE_NEWNET); err != nil {
			n.t.Errorf("enter the namespace: %v", err)
			return
		}
		f()
	}()
	<-done
}

// link connects n (address at) with other (address to), which gets a default route by n. Addresses have prefix lengths.
func (n *namespace) link(other *namespace, at, to string) {
	n.t.Helper()
	dev := "v" + strings.ReplaceAll(strings.Split(to, "/")[0], ".", "")
	n.ip("link", "add", dev, "type", "veth", "peer", "name", "eth0", "netns", other.name)
	n.ip("addr", "add", at, "dev", dev)
	n.ip("link", "set", dev, "up")
	other.ip("addr", "add", to, "dev", "eth0")
	other.ip("link", "set", "eth0", "up")
	other.ip("route", "add", "default", "via", strings.Split(at, "/")[0])
}

// serve answers every TCP connection and UDP packet at address with "<name> <client's address>".
func (n *namespace) serve(name, address string) {
	n.t.Helper()
	n.do(func() {
		tcp, err := net.Listen("tcp", address)
		if err != nil {
			n.t.Error(err)
			return
		}
		udp, err := net.ListenPacket("udp", address)
		if err != nil {
			n.t.Error(err)
			return
		}
		n.t.Cleanup(func() { tcp.Close(); udp.Close() })
		go func() {
			for {
				c, err := tcp.Accept()
				if err != nil {
					return
				}
				host, _, _ := net.SplitHostPort(c.RemoteAddr().String())
				fmt.Fprintf(c, "%s %s\n", name, host)
				c.Close()
			}
		}()
		go func() {
			buf := make([]byte, 64)
			for {
				_, from, err := udp.ReadFrom(buf)
				if err != nil {
					return
				}
				host, _, _ := net.SplitHostPort(from.String())
				_, _ = fmt.Fprintf(packetWriter{udp, from}, "%s %s\n", name, host)
			}
		}()
	})
}

type packetWriter struct {
	net.PacketConn
	to net.Addr
}

func (w packetWriter) Write(p []byte) (int, error) { return w.WriteTo(p, w.to) }

// ask connects from the namespace to address and returns the server's name and what client address it saw.
func (n *namespace) ask(network, address string) (server, client string, err error) {
	n.do(func() {
		var c net.Conn
		if c, err = (&net.Dialer{Timeout: 2 * time.Second}).DialContext(context.Background(), network, address); err != nil {
			return
		}
		defer c.Close()
		server, client, err = exchange(c)
	})
	return server, client, err
}

// exchange sends a packet (which a TCP server ignores) and reads the answer.
func exchange(c net.Conn) (server, client string, err error) {
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", "", err
	}
	if c.LocalAddr().Network() == "udp" {
		if _, err := c.Write([]byte("?")); err != nil {
			return "", "", err
		}
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	server, client, _ = strings.Cut(strings.TrimSpace(line), " ")
	return server, client, err
}
