package main

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// asBonsai is the variable that makes the test's own program bonsai.
const asBonsai = "BONSAI_TEST_AS_BONSAI"

// TestMain is bonsai itself in a process that a test has started as one.
func TestMain(m *testing.M) {
	if os.Getenv(asBonsai) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestHangup: a terminal that closes ends a command as SIGTERM does. It ended commands at once, with all that they had
// to tidy up.
func TestHangup(t *testing.T) {
	t.Parallel()
	// What this process catches its children do not ignore, even where it was started to ignore it, as by nohup.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(caught) })
	atWork := make(chan struct{})
	var once sync.Once
	backend := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		once.Do(func() { close(atWork) })
	}))
	t.Cleanup(backend.Close)
	authority := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: backend.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "balance", "--listen=127.0.0.1:0",
		"--backend="+backend.Listener.Addr().String(), "--certificate-authority="+authority)
	cmd.Env = append(os.Environ(), asBonsai+"=1")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-atWork:
	case err := <-ended:
		t.Fatal("it ended before the signal: ", err)
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
}
