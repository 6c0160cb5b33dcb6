// Package realtest starts Kubernetes' own kube-apiserver, for tests that record its answers or hold ours beside them.
package realtest

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Binary returns the kube-apiserver to start, which $REFERENCE_KUBE_APISERVER names; "": none.
func Binary() string { return os.Getenv("REFERENCE_KUBE_APISERVER") }

// Config is what a server needs.
type Config struct {
	Etcd   string // URL
	Tokens string // a file of --token-auth-file
	Token  string // one of Tokens, which may read /readyz
	// Unready has Start return as soon as the server answers: it never becomes ready.
	Unready bool
	Flags   []string // beside those that every server has
}

// patience bounds the start: the server makes its own certificates, and the machine may be busy.
const patience = 5 * time.Minute

// Start starts the server on a port of loopback, waits for it, and returns its URL. It ends with the test.
func Start(t *testing.T, c Config) string {
	t.Helper()
	if Binary() == "" {
		t.Fatal("REFERENCE_KUBE_APISERVER names no kube-apiserver to ask")
	}
	dir := t.TempDir()
	key, tokens := filepath.Join(dir, "sa.key"), filepath.Join(dir, "tokens")
	write(t, key, newKey(t))
	write(t, tokens, []byte(c.Tokens))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_, port, err := net.SplitHostPort(at)
	if err = cmp.Or(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(Binary(), append([]string{"--etcd-servers=" + c.Etcd, "--bind-address=127.0.0.1",
		"--secure-port=" + port, "--cert-dir=" + dir, "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + key, "--service-account-signing-key-file=" + key, "--token-auth-file=" + tokens,
		"--service-cluster-ip-range=10.96.0.0/16"}, c.Flags...)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // reports the kill
		if t.Failed() {
			t.Logf("the real server's last words:\n%s", log.Bytes()[max(0, log.Len()-4000):])
		}
	})
	url := "https://" + at
	wait(t, url, c)
	return url
}

// wait waits until the server is ready, or answers if it never becomes ready.
func wait(t *testing.T, url string, c Config) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // on loopback, in a test
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	tick, deadline := time.NewTicker(200*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/readyz", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+c.Token)
			resp, err := client.Do(r)
			if err != nil {
				continue
			}
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK || c.Unready {
				return
			}
		case <-deadline:
			t.Fatal("the real server is not ready")
		}
	}
}

// newKey makes a key for the tokens of service accounts, in PEM.
func newKey(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
