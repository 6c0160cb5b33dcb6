package history

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const token = "history"

// compactEvery is how often the API server forgets old versions: a revision can be read for one to two times as long.
// Kubernetes' default of five minutes would let no watcher of a short run come too late.
const compactEvery = 500 * time.Millisecond

// server is a program that is killed and started again on the same port and data.
type server struct {
	path, log, url, health string
	args                   []string
	client                 *http.Client
	cmd                    *exec.Cmd
	starts                 atomic.Int64
}

// servers returns etcd and n kube-apiservers on it, on free ports of loopback, not yet started. The binaries are found
// as by the tests of controllers. What flags returns is given to the API server of that number.
func servers(t *testing.T, client *http.Client, n int, flags func(int) []string) (etcd *server, apis []*server) {
	etcdPath, apiPath := binary(t, "BONSAI_TEST_ETCD", "etcd"), binary(t, "BONSAI_TEST_APISERVER", "kube-apiserver")
	dir := t.TempDir()
	key, tokens := filepath.Join(dir, "sa.key"), filepath.Join(dir, "tokens.csv")
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, key, pem.EncodeToMemory(
		&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}))
	writeFile(t, tokens, []byte(token+",admin,admin,\"system:masters\"\n"))
	ports := freePorts(t, 2+n)
	url, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	etcd = &server{path: etcdPath, log: filepath.Join(dir, "etcd.log"), url: url, health: url + "/health",
		client: client, args: []string{
			"--data-dir", filepath.Join(dir, "etcd"), "--listen-client-urls", url, "--advertise-client-urls", url,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default=" + peer,
			"--log-level", "error",
		}}
	for i := range n {
		host := fmt.Sprintf("https://127.0.0.1:%d", ports[2+i])
		apis = append(apis, &server{path: apiPath, log: filepath.Join(dir, fmt.Sprintf("kube-apiserver-%d.log", i)),
			url: host, health: host + "/readyz", client: client, args: append([]string{
				"--etcd-servers=" + url, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", ports[2+i]),
				"--cert-dir=" + filepath.Join(dir, fmt.Sprintf("certs-%d", i)),
				"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + key,
				"--service-account-signing-key-file=" + key,
				"--token-auth-file=" + tokens, "--authorization-mode=RBAC",
				"--disable-admission-plugins=ServiceAccount",
			}, flags(i)...)})
	}
	for _, s := range append([]*server{etcd}, apis...) {
		t.Cleanup(func() {
			s.kill()
			if text, err := os.ReadFile(s.log); err == nil && t.Failed() {
				t.Logf("end of %s:\n%s", s.log, text[max(0, len(text)-2000):])
			}
		})
	}
	return etcd, apis
}

// start runs the program, which dies with the test process too, and waits for at most a minute until it is healthy.
func (s *server) start(ctx context.Context) error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd = exec.Command(s.path, s.args...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	s.starts.Add(1)
	return s.await(ctx)
}

// await waits for at most a minute until the program is healthy.
func (s *server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if code, _, err := call(ctx, s.client, http.MethodGet, s.health, "", nil); err == nil && code == http.StatusOK {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s does not become healthy", s.path)
		}
	}
}

// compacted asks etcd whether it has forgotten a revision.
func (s *server) compacted(ctx context.Context, revision uint64) bool {
	question := map[string]any{"key": []byte("/"), "revision": revision, "limit": 1}
	code, answer, err := call(ctx, s.client, http.MethodPost, s.url+"/v3/kv/range", "application/json", question)
	return err == nil && code != http.StatusOK && strings.Contains(string(answer), "has been compacted")
}

// kill ends the program with SIGKILL and waits until it is gone; stop does so with SIGTERM.
func (s *server) kill() { s.end(syscall.SIGKILL) }
func (s *server) stop() { s.end(syscall.SIGTERM) }

func (s *server) end(signal syscall.Signal) {
	if s.cmd != nil && s.cmd.Process != nil {
		_ = s.cmd.Process.Signal(signal)
		_ = s.cmd.Wait()
	}
	s.cmd = nil
}

// binary finds a program by the variable or in bin/ of the repository.
func binary(t *testing.T, variable, name string) string {
	path := os.Getenv(variable)
	if path == "" {
		path = filepath.Join("..", "..", "bin", name)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED: no %s at %q; build it or set %s", name, path, variable)
	}
	return path
}

func freePorts(t *testing.T, n int) (ports []int) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func writeFile(t *testing.T, path string, data []byte) {
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
