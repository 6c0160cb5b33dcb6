package guard

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spf13/pflag"

	"bonsai/pkg/connlimit"
	"bonsai/pkg/connlimit/connlimittest"
)

// TestTrust: the connection of a user with a right stays when others need room; what everybody may proves nothing.
func TestTrust(t *testing.T) {
	t.Parallel()
	kubeconfig := apiServer(t)
	for _, c := range []struct {
		name, path, token string
		args              []string
		code              int
		stays             bool
	}{
		{"a right", "/metrics", "reader", nil, 200, true},
		{"no right", "/metrics", "nobody", nil, 403, false},
		{"what everybody may", "/healthz", "reader", nil, 200, false},
		{"unknown, and everybody may", "/metrics", "", []string{"--authorization-always-allow-paths=/metrics"}, 200, false},
		{"wrong token", "/healthz", "wrong", nil, 401, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var f Flags
			fs := pflag.NewFlagSet("x", pflag.ContinueOnError)
			f.AddFlags(fs)
			if err := fs.Parse(append(c.args, "--authentication-kubeconfig="+kubeconfig,
				"--authorization-kubeconfig="+kubeconfig)); err != nil {
				t.Fatal(err)
			}
			guard, err := f.New("x", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			var from []string // the client's addresses, of each request
			h := guard.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				from = append(from, r.RemoteAddr)
				h.ServeHTTP(w, r)
			}))
			limit := connlimit.NewUntrusted(connlimit.UntrustedConfig{Most: 1, Bytes: 1 << 20})
			server.Listener = limit.Listener(server.Listener)
			server.Config.ConnContext = connlimit.ConnContext
			server.Start()
			t.Cleanup(server.Close)
			ask := func() {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+c.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if c.token != "" {
					r.Header.Set("Authorization", "Bearer "+c.token)
				}
				resp, err := server.Client().Do(r)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != c.code {
					t.Fatal(resp.StatusCode, err)
				}
			}
			ask()
			connlimittest.WantClosed(t, connlimittest.Flood(t, server.Listener.Addr().String(), 3), 2)
			ask()
			if stayed := from[0] == from[1]; stayed != c.stays {
				t.Errorf("connections from %v", from)
			}
		})
	}
}
