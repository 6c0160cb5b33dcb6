package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/reservedport"
)

// server is a whole API server, ours or Kubernetes' own.
type server struct {
	name, url string
	client    *http.Client
	log       *lockedBuffer
	// stop ends the server, and waits for its end.
	stop  func()
	ended chan struct{} // closed when its process has ended
}

const adminToken = "reference"

// startOurs runs the command with these flags, and waits until it is ready.
func startOurs(t *testing.T, args ...string) *server {
	t.Helper()
	s := newServer(t, "ours")
	s.runOurs(t, append(s.flags(t), args...))
	s.await(t, "/readyz")
	return s
}

// asServer is the variable that makes the test's own program a server.
const asServer = "BONSAI_TEST_AS_SERVER"

// TestMain is the server itself in a process that a test has started as one (runOurs).
func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// runOurs runs the command, as it is compiled into the test, in a process of its own: the log of client libraries and
// the heap's settings are the process's.
func (s *server) runOurs(t *testing.T, args []string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), asServer+"=1")
	s.run(t, cmd, func(err error) {
		if err != nil {
			t.Errorf("our server ended with %v", err)
		}
	})
}

// startReference runs Kubernetes' own kube-apiserver of $REFERENCE_KUBE_APISERVER.
func startReference(t *testing.T, args ...string) *server {
	t.Helper()
	s := newServer(t, "the real one")
	s.runReference(t, append(s.flags(t), args...))
	s.await(t, "/readyz")
	return s
}

// runReference runs Kubernetes' own program, which writes what waits before it ends.
func (s *server) runReference(t *testing.T, args []string) {
	t.Helper()
	s.run(t, exec.Command(os.Getenv("REFERENCE_KUBE_APISERVER"), args...), func(error) {}) // it reports the signal
}

// run starts the server. ended gets what its process ended with when it is stopped.
func (s *server) run(t *testing.T, cmd *exec.Cmd, ended func(error)) {
	t.Helper()
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var how error
	go func() { how = cmd.Wait(); close(s.ended) }()
	s.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself, which Wait tells
		<-s.ended
		ended(how)
	})
	t.Cleanup(s.stop)
}

func newServer(t *testing.T, name string) *server {
	t.Helper()
	port, hold, err := reservedport.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hold.Close() })
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // on loopback, in a test
	t.Cleanup(transport.CloseIdleConnections)
	s := &server{name: name, url: fmt.Sprintf("https://127.0.0.1:%d", port),
		client: &http.Client{Transport: transport}, log: &lockedBuffer{}, ended: make(chan struct{})}
	t.Cleanup(func() {
		if t.Failed() {
			text := s.log.String()
			t.Logf("the last words of %s:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
	return s
}

// flags are what a server needs to start, except for its etcd.
func (s *server) flags(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	accounts, tokens := filepath.Join(dir, "sa.key"), filepath.Join(dir, "tokens")
	writeFile(t, accounts, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
	writeFile(t, tokens, adminToken+`,admin,admin,"system:masters"`+"\n")
	_, port, _ := strings.Cut(strings.TrimPrefix(s.url, "https://"), ":")
	return []string{"--bind-address=127.0.0.1", "--secure-port=" + port, "--permit-port-sharing", "--cert-dir=" + dir,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + accounts,
		"--service-account-signing-key-file=" + accounts, "--token-auth-file=" + tokens, "--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.96.0.0/16", "--disable-admission-plugins=ServiceAccount"}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// await waits until a GET of path is answered 200.
func (s *server) await(t *testing.T, path string) {
	t.Helper()
	s.until(t, path, func(code int, _ string) bool { return code == http.StatusOK })
}

// until waits for an answer to a GET of path.
func (s *server) until(t *testing.T, path string, good func(code int, text string) bool) {
	t.Helper()
	var code int
	var text string
	var err error
	deadline := time.After(3 * time.Minute)
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case <-tick.C:
			if code, text, err = s.do(t.Context(), http.MethodGet, path, ""); err == nil && good(code, text) {
				return
			}
		case <-s.ended:
			t.Fatalf("%s has ended", s.name)
		case <-deadline:
			t.Fatalf("%s answers %s with %d %s %v", s.name, path, code, text, err)
		}
	}
}

func (s *server) do(ctx context.Context, method, path, body string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// ask asks for something that must work.
func (s *server) ask(t *testing.T, method, path, body string) string {
	t.Helper()
	code, text, err := s.do(t.Context(), method, path, body)
	if err != nil || code >= 300 {
		t.Fatalf("%s answers %s %s with %d %s %v", s.name, method, path, code, text, err)
	}
	return text
}

// lockedBuffer takes the log of a server while a test reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String returns what has been written so far.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// bare is an etcd as it is, without encryption.
func bare(t *testing.T, endpoint string) *etcd.Store {
	t.Helper()
	s, err := etcd.New(t.Context(), etcd.Config{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// stored returns what an etcd keeps under key, nil if nothing.
func stored(t *testing.T, s *etcd.Store, key string) []byte {
	t.Helper()
	item, err := s.Get(t.Context(), key, 0)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		t.Fatal(fmt.Errorf("read %s from etcd: %w", key, err))
	}
	return item.Value()
}

// anything reports whether an etcd has a key under prefix.
func anything(t *testing.T, endpoint, prefix string) bool {
	t.Helper()
	l, err := bare(t, endpoint).List(t.Context(), prefix, storage.ListOptions{Match: storage.Latest, Raw: true})
	if err != nil {
		t.Fatal(err)
	}
	return len(l.Items) > 0
}

// awaitCompaction waits until an etcd has forgotten its first revisions.
func awaitCompaction(t *testing.T, name, endpoint string) {
	t.Helper()
	s := bare(t, endpoint)
	deadline := time.After(time.Minute)
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		select {
		case <-tick.C:
			_, err := s.Fingerprint(t.Context(), "/registry/", 2)
			if errors.Is(err, storage.ErrExpired) {
				return
			}
		case <-deadline:
			t.Fatalf("the etcd of %s is not compacted", name)
		}
	}
}
