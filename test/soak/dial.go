package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// getFrom does an HTTP GET from a node's network namespace and returns the body.
func (c *clusterUnderTest) getFrom(ctx context.Context, node, address, path string) (string, error) {
	root, err := c.root(ctx, node)
	if err != nil {
		return "", err
	}
	space, err := os.Open(strings.TrimSuffix(root, "root") + "ns/net")
	if err != nil {
		return "", err
	}
	defer space.Close()
	type dialed struct {
		conn net.Conn
		err  error
	}
	done := make(chan dialed, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: a thread in a foreign namespace must not be used again
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- dialed{nil, fmt.Errorf("enter the network of %s: %w", node, err)}
			return
		}
		conn, err := net.DialTimeout("tcp4", address, 2*time.Second)
		done <- dialed{conn, err}
	}()
	d := <-done
	if d.err != nil {
		return "", d.err
	}
	defer d.conn.Close()
	if err := d.conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(d.conn, "GET %s HTTP/1.0\r\n\r\n", path); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(io.LimitReader(d.conn, 4096))
	if err != nil {
		return "", err
	}
	head, body, _ := strings.Cut(string(answer), "\r\n\r\n")
	if status, _, _ := strings.Cut(head, "\r\n"); !strings.Contains(status, " 200 ") {
		return "", fmt.Errorf("it says %q", status)
	}
	return strings.TrimSpace(body), nil
}
