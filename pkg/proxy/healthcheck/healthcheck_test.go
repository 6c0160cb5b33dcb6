package healthcheck

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"bonsai/pkg/proxy"
)

// TestServers: a port is served while a service has it, says 200 with endpoints here and 503 without, and is free afterwards.
func TestServers(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	l.Close()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := New(slog.New(slog.DiscardHandler))
	name := proxy.Name{Namespace: "default", Name: "web"}
	for _, step := range []struct {
		health proxy.Health
		want   int // 0: nobody listens
	}{
		{proxy.Health{Port: port, Local: 2}, 200},
		{proxy.Health{Port: port}, 503},
		{proxy.Health{}, 0},
		{proxy.Health{Port: port, Local: 1}, 200},
	} {
		if err := s.Apply(ctx, proxy.Update{Health: map[proxy.Name]proxy.Health{name: step.health}}); err != nil {
			t.Fatal(err)
		}
		got := 0
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if res, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", port)); err == nil {
			got = res.StatusCode
			res.Body.Close()
		}
		if got != step.want {
			t.Errorf("%+v: got %d, want %d", step.health, got, step.want)
		}
	}
}
