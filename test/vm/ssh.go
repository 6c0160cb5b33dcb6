package vm

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// remote is root's ssh to a machine. It keeps one connection: a new one costs an emulated machine a second.
type remote struct {
	address string
	config  *ssh.ClientConfig

	mu     sync.Mutex
	client *ssh.Client
}

func newRemote(address, key string) (*remote, error) {
	data, err := os.ReadFile(key)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(data)
	if err != nil {
		return nil, err
	}
	return &remote{address: address, config: &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		// The address is a port of this machine's loopback that qemu holds.
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	}}, nil
}

// connected returns the kept connection, or a new one.
func (r *remote) connected(ctx context.Context) (*ssh.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client != nil {
		return r.client, nil
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.address)
	if err != nil {
		return nil, err
	}
	// qemu accepts before anybody listens in the machine.
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	c, channels, requests, err := ssh.NewClientConn(conn, r.address, r.config)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	r.client = ssh.NewClient(c, channels, requests)
	return r.client, nil
}

// hangUp ends the kept connection and all that runs on it.
func (r *remote) hangUp() {
	r.mu.Lock()
	client := r.client
	r.mu.Unlock()
	r.drop(client)
}

// drop ends a connection and all that runs on it, and keeps a newer one.
func (r *remote) drop(client *ssh.Client) {
	if client == nil {
		return
	}
	_ = client.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == client {
		r.client = nil
	}
}

// session begins one on the kept connection. It drops the connection if the machine does not answer before ctx ends.
func (r *remote) session(ctx context.Context) (*ssh.Client, *ssh.Session, error) {
	client, err := r.connected(ctx)
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { r.drop(client) })
	defer stop()
	session, err := client.NewSession()
	if err != nil {
		r.drop(client) // the machine has ended since
		return nil, nil, errors.Join(context.Cause(ctx), err)
	}
	return client, session, nil
}

// searchPath begins every script: a session by ssh has no programs of root's, and none of Bonsai's.
const searchPath = "export PATH=$PATH:/usr/sbin:/sbin:/usr/local/bin; "

// run runs a script with an input, and returns what it wrote.
func (r *remote) run(ctx context.Context, script string, in io.Reader) (string, error) {
	_, session, err := r.session(ctx)
	if err != nil {
		return "", err
	}
	var out output
	session.Stdin, session.Stdout, session.Stderr = in, &out, &out
	done := make(chan error, 1)
	go func() { done <- session.Run(searchPath + script) }()
	select {
	case err := <-done:
		return out.String(), err
	case <-ctx.Done():
		// A machine that hangs never says that the session has ended. It is left to the connection's end.
		_ = session.Close()
		return out.String(), context.Cause(ctx)
	}
}

// output is what a script has written so far, to both of its streams.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns it without the space around it.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.TrimSpace(o.text.String())
}

// follow runs a script, and calls said with each line that it writes, as soon as it has.
func (r *remote) follow(ctx context.Context, script string, said func(line string)) error {
	client, session, err := r.session(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	out, err := session.StdoutPipe()
	if err != nil {
		return err
	}
	// A machine that hangs never says that the session has ended.
	stop := context.AfterFunc(ctx, func() { r.drop(client) })
	defer stop()
	if err := session.Start(searchPath + "exec 2>&1; " + script); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		said(lines.Text())
	}
	if lines.Err() != nil {
		_ = session.Close() // nobody reads on
	}
	return errors.Join(context.Cause(ctx), lines.Err(), session.Wait())
}

// maxLine is the longest line that follow takes, in bytes.
const maxLine = 1 << 20

func (r *remote) dial(ctx context.Context, network, address string) (net.Conn, error) {
	client, err := r.connected(ctx)
	if err != nil {
		return nil, err
	}
	return client.DialContext(ctx, network, address)
}
