// Package netnstest gives tests network namespaces of their own, with servers and clients in them.
package netnstest

import (
	"bufio"
	"context"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Namespace is a network namespace of a test, deleted with it.
type Namespace struct {
	// Name is that under /run/netns.
	Name string
	t    testing.TB
	file *os.File
}

// New makes a namespace, one for each label of a test, or skips the test where that is not possible.
func New(t testing.TB, label string) *Namespace {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: needs root for network namespaces")
	}
	for _, tool := range []string{"nft", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: needs %s: %v", tool, err)
		}
	}
	n := &Namespace{t: t, Name: fmt.Sprintf("netnstest-%d-%08x-%s", os.Getpid(), crc32.ChecksumIEEE([]byte(t.Name())),
		label)}
	command(t, "ip", "netns", "add", n.Name)
	t.Cleanup(func() { command(t, "ip", "netns", "del", n.Name) })
	f, err := os.Open("/run/netns/" + n.Name)
	if err != nil {
		t.Fatal(err)
	}
	n.file = f
	t.Cleanup(func() { f.Close() })
	n.IP("link", "set", "lo", "up")
	return n
}

func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// IP runs ip with args in the namespace.
func (n *Namespace) IP(args ...string) string {
	n.t.Helper()
	return command(n.t, "ip", append([]string{"-n", n.Name}, args...)...)
}

// Run runs a program in the namespace and returns what it says.
func (n *Namespace) Run(args ...string) string {
	n.t.Helper()
	return command(n.t, "ip", append([]string{"netns", "exec", n.Name}, args...)...)
}

// Do calls f on a thread in the namespace. The thread is not used again.
func (n *Namespace) Do(f func()) {
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

// Link connects n (address at) with other (address to), which gets a default route by n. Addresses have prefix lengths.
func (n *Namespace) Link(other *Namespace, at, to string) {
	n.t.Helper()
	dev := "v" + strings.ReplaceAll(strings.Split(to, "/")[0], ".", "")
	n.IP("link", "add", dev, "type", "veth", "peer", "name", "eth0", "netns", other.Name)
	n.IP("addr", "add", at, "dev", dev)
	n.IP("link", "set", dev, "up")
	other.IP("addr", "add", to, "dev", "eth0")
	other.IP("link", "set", "eth0", "up")
	other.IP("route", "add", "default", "via", strings.Split(at, "/")[0])
}

// Serve answers every TCP connection and UDP packet at address with "<name> <client's address>".
func (n *Namespace) Serve(name, address string) {
	n.t.Helper()
	n.Do(func() {
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

// Ask connects from the namespace to address and returns the server's name and what client address it saw.
func (n *Namespace) Ask(network, address string) (server, client string, err error) {
	n.Do(func() {
		var c net.Conn
		if c, err = (&net.Dialer{Timeout: 2 * time.Second}).DialContext(context.Background(), network,
			address); err != nil {
			return
		}
		defer c.Close()
		server, client, err = Exchange(c)
	})
	return server, client, err
}

// Exchange sends a packet (which a TCP server ignores) and reads the answer.
func Exchange(c net.Conn) (server, client string, err error) {
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
