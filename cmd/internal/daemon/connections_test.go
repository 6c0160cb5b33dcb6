package daemon

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"bonsai/pkg/connlimit/connlimittest"
)

// TestFloodOfConnections: of any number of connections maxUntrusted are open at most, on all listeners together, and
// others get their answers meanwhile.
func TestFloodOfConnections(t *testing.T) {
	t.Parallel()
	for name, insecure := range map[string]bool{"TLS": false, "plain": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var listeners []net.Listener
			for range 2 {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				listeners = append(listeners, l)
			}
			addresses := []string{listeners[0].Addr().String(), listeners[1].Addr().String()}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- (&Server{Insecure: insecure, Log: slog.New(slog.DiscardHandler)}).serve(ctx, listeners...)
			}()
			conns := connlimittest.Flood(t, addresses[0], maxUntrusted)
			conns = append(conns, connlimittest.Flood(t, addresses[1], 10)...)
			connlimittest.WantClosed(t, conns, 10)
			scheme := "https://"
			if insecure {
				scheme = "http://"
			}
			client := http.Client{Transport: &http.Transport{
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
			resp, err := client.Get(scheme + addresses[0] + "/healthz")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ok" {
				t.Errorf("%q %v", body, err)
			}
			for _, c := range conns {
				c.Close() // the server does not wait for them
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
