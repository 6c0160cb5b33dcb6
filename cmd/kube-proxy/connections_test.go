package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"bonsai/pkg/connlimit"
	"bonsai/pkg/connlimit/connlimittest"
)

// TestFloodOfConnections: of any number of connections to the port of health some are open at most. Others get their
// answers meanwhile.
func TestFloodOfConnections(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	const most = 64 // few enough to be there before a silent connection has to say something
	limit := connlimit.NewUntrusted(connlimit.UntrustedConfig{Most: most, Bytes: maxReceived})
	go func() {
		done <- serveOn(ctx, l, limit, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "ok")
		}), slog.New(slog.DiscardHandler))
	}()
	connlimittest.WantClosed(t, connlimittest.Flood(t, address, most+10), 10)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ok" {
		t.Errorf("%q %v", body, err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
