package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"bonsai/api/kubeversion"
	"bonsai/pkg/authorities"
)

func TestMainCodes(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		run  error
		want int
	}{
		{"ok", nil, nil, 0},
		{"failure", nil, errors.New("no"), 1},
		{"given up", nil, fmt.Errorf("wait for the nodes: %w", context.Canceled), 1},
		{"unknown flag", []string{"--nonsense"}, nil, 1},
		{"argument", []string{"extra"}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := &cobra.Command{Use: "x", Args: NoArgs, RunE: func(*cobra.Command, []string) error { return c.run }}
			cmd.SetArgs(append([]string{}, c.args...))
			if got := Main(cmd); got != c.want {
				t.Errorf("exit code %d, not %d", got, c.want)
			}
		})
	}
}

// TestMainEndsBySignal: what a signal ended has ended cleanly.
func TestMainEndsBySignal(t *testing.T) {
	cmd := &cobra.Command{Use: "x", RunE: func(cmd *cobra.Command, _ []string) error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		<-cmd.Context().Done()
		return fmt.Errorf("watch: %w", cmd.Context().Err())
	}}
	cmd.SetArgs([]string{})
	if got := Main(cmd); got != 0 {
		t.Errorf("exit code %d", got)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	bad := errors.New("secret detail")
	s := &Server{Live: []Check{{"ping", func() error {
		return nil
	}}}, Ready: []Check{{"sync", func() error {
		return bad
	}}}, Registry: NewMetrics(), Log: slog.New(slog.DiscardHandler),
		Pages: NewPages("kube-x", pflag.NewFlagSet("kube-x", pflag.ContinueOnError)),
		Extra: map[string]http.Handler{"/debug/x": http.NotFoundHandler()}}
	h := s.handler()
	get := func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
	if code, body := get("/livez"); code != 200 || body != "ok" {
		t.Errorf("livez %d %q", code, body)
	}
	if code, body := get("/readyz"); code != 500 || !strings.Contains(body, "[-]sync failed: reason withheld") ||
		strings.Contains(body, bad.Error()) {
		t.Errorf("readyz %d %q", code, body)
	}
	if code, body := get("/readyz?exclude=sync"); code != 200 || body != "ok" {
		t.Errorf("readyz without sync: %d %q", code, body)
	}
	if code, body := get("/healthz/sync"); code != 500 ||
		body != "[-]sync failed: reason withheld\nhealthz check failed\n" {
		t.Errorf("one check: %d %q", code, body)
	}
	if code, body := get("/metrics/slis"); code != 200 ||
		!strings.Contains(body, `kubernetes_healthcheck{name="sync",type="readyz"} 0`) {
		t.Errorf("indicators: %d %s", code, body)
	}
	if code, body := get("/livez?verbose"); code != 200 || !strings.Contains(body, "[+]ping ok") {
		t.Errorf("verbose %d %q", code, body)
	}
	if code, body := get("/statusz"); code != 200 ||
		!strings.Contains(body, "\nPaths: /flagz /healthz /livez /metrics /readyz /statusz /version\n") {
		t.Errorf("statusz: %d %s", code, body)
	}
	if code, body := get("/flagz"); code != 200 || !strings.HasPrefix(body, "\nkube-x flagz\n") {
		t.Errorf("flagz: %d %s", code, body)
	}
	if code, body := get("/metrics"); code != 200 || !strings.Contains(body, "go_goroutines") {
		t.Errorf("metrics: %d", code)
	}
}

// TestServerServesTLSAndStops: clients are asked for their certificates for the guard's sake; they need not be of a
// known authority.
func TestServerServesTLSAndStops(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	guard := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if certs := r.TLS.PeerCertificates; len(certs) != 1 || certs[0].Subject.CommonName != "client" {
				t.Errorf("client certificates: %v", certs)
			}
			next.ServeHTTP(w, r)
		})
	}
	done := make(chan error, 1)
	go func() {
		done <- (&Server{Listener: Listener{Address: "127.0.0.1", Port: port},
			Clients: authorities.Of(&authorities.Held{}), Guard: guard,
			Log: slog.New(slog.DiscardHandler)}).Run(ctx)
	}()
	own, err := selfSigned("client")
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{own}},
		DisableKeepAlives: true}}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); ; <-tick.C {
		resp, err := client.Get(fmt.Sprintf("https://127.0.0.1:%d/healthz", port))
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestClient(t *testing.T) {
	t.Parallel()
	if _, err := Client("--kubeconfig", "", "https://127.0.0.1:2", "x"); err == nil ||
		!strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("no kubeconfig: %v", err)
	}
	path := filepath.Join(t.TempDir(), "kc")
	if err := os.WriteFile(path,
		[]byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"x","context":{"cluster":"c"}}],"current-context":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for master, want := range map[string]string{"": "https://127.0.0.1:1",
		"https://127.0.0.1:2": "https://127.0.0.1:2"} {
		config, err := Client("--kubeconfig", path, master, "x")
		if err != nil || config.Host != want || config.QPS != -1 || config.UserAgent != "x/"+kubeversion.Release {
			t.Errorf("--master %q: %+v, %v", master, config, err)
		}
	}
}
