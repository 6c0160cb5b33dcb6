// Package etcdtest starts a real etcd for a test.
package etcdtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Server is one etcd process with its data in a directory of the test.
type Server struct {
	// Endpoint is the client URL, plain HTTP on loopback.
	Endpoint string

	binary, dir, peer string
	cmd               *exec.Cmd
	// ended is closed when the process has ended; log may be read then. It is nil if there is no process.
	ended chan struct{}
	log   bytes.Buffer
}

// errTaken says that somebody else got a port that was free when it was looked for.
var errTaken = errors.New("a port was taken meanwhile")

// Start starts etcd, waits until it is healthy and stops it when the test ends. The binary is $ETCD or bin/etcd in the
// nearest folder above that holds go.mod; without it the test is skipped.
func Start(t testing.TB) *Server {
	t.Helper()
	binary, err := find()
	if err != nil {
		t.Skipf("SKIPPED, no etcd to test with: %v (build it with `make tools`, or set ETCD)", err)
	}
	s := &Server{binary: binary}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("etcd's last words:\n%s", s.log.Bytes()[max(0, s.log.Len()-2000):])
		}
	})
	const tries = 5 // each outgoing connection of the machine may take a port that was free
	for range tries {
		s.dir, s.Endpoint, s.peer = t.TempDir(), freeURL(t), freeURL(t)
		if err = s.run(); !errors.Is(err, errTaken) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func find() (string, error) {
	if path := os.Getenv("ETCD"); path != "" {
		_, err := os.Stat(path)
		return path, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working directory: %w", err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			path := filepath.Join(dir, "bin", "etcd")
			_, err := os.Stat(path)
			return path, err
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above the working directory")
		}
	}
}

func freeURL(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// Run starts the process on the same ports and data again after Kill, and waits until it is healthy.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	if err := s.run(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) run() error {
	s.log.Reset()
	s.ended = nil
	s.cmd = exec.Command(s.binary, "--name=test", "--data-dir="+filepath.Join(s.dir, "data"), "--unsafe-no-fsync",
		"--log-level=warn",
		"--listen-client-urls="+s.Endpoint, "--advertise-client-urls="+s.Endpoint,
		"--listen-peer-urls="+s.peer, "--initial-advertise-peer-urls="+s.peer, "--initial-cluster=test="+s.peer)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	s.ended = make(chan struct{})
	go func(cmd *exec.Cmd, ended chan struct{}) {
		_ = cmd.Wait() // how it ended is in the log
		close(ended)
	}(s.cmd, s.ended)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		select {
		case <-poll.C:
			if s.healthy(ctx) {
				return nil
			}
		case <-s.ended:
			if strings.Contains(s.log.String(), "address already in use") {
				return errTaken
			}
			return fmt.Errorf("etcd has ended:\n%s", s.log.String())
		case <-ctx.Done():
			s.Kill()
			return fmt.Errorf("etcd is not healthy after 20 s:\n%s", s.log.String())
		}
	}
}

func (s *Server) healthy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // whoever has taken the port may never answer
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint+"/health", nil)
	if err != nil {
		return false
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}

// Kill ends the process as kill -9 does, and waits for it.
func (s *Server) Kill() {
	if s.ended == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may be gone already
	<-s.ended
}
