package healthcheck

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"bonsai/pkg/proxy"
)

// freePort is a port that nobody listens on.
func freePort(t *testing.T) (port uint16, listener net.Listener) {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	return uint16(l.Addr().(*net.TCPAddr).Port), l
}

// ask returns the status, the body and the endpoint weight that port answers; status 0: nobody listens.
func ask(port uint16) (status int, body, weight string) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", port))
	if err != nil {
		return 0, "", ""
	}
	defer res.Body.Close()
	data, _ := io.ReadAll(res.Body)
	return res.StatusCode, strings.TrimSpace(string(data)), res.Header.Get("X-Load-Balancing-Endpoint-Weight")
}

// TestServers: a port is served while a service has it, says 200 with endpoints here and 503 without or while the proxy
// cannot write its rules (Service API, healthCheckNodePort; KEP-3836), and is free afterwards.
func TestServers(t *testing.T) {
	t.Parallel()
	port, l := freePort(t)
	l.Close()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	alive := true
	s := New(func() bool { return alive }, slog.New(slog.DiscardHandler))
	name := proxy.Name{Namespace: "default", Name: "web"}
	for _, step := range []struct {
		health proxy.Health
		alive  bool
		want   int // 0: nobody listens
	}{
		{proxy.Health{Port: port, Local: 2}, true, 200},
		{proxy.Health{Port: port}, true, 503},
		{proxy.Health{Port: port, Local: 2}, false, 503},
		{proxy.Health{}, true, 0},
		{proxy.Health{Port: port, Local: 1}, true, 200},
	} {
		alive = step.alive
		if err := s.Apply(ctx, proxy.Update{Health: map[proxy.Name]proxy.Health{name: step.health}}); err != nil {
			t.Fatal(err)
		}
		status, body, weight := ask(port)
		if status != step.want {
			t.Errorf("%+v: got %d, want %d", step.health, status, step.want)
		}
		want := fmt.Sprintf(`{"service":{"namespace":"default","name":"web"},"localEndpoints":%d,"serviceProxyHealthy":%v}`, step.health.Local, step.alive)
		if status != 0 && (body != want || weight != fmt.Sprint(step.health.Local)) {
			t.Errorf("%+v: got %s with weight %q, want %s", step.health, body, weight, want)
		}
	}
}

// TestTakenPort: a port that somebody else has is served once it is free, without a change of its service.
func TestTakenPort(t *testing.T) {
	t.Parallel()
	port, l := freePort(t)
	defer l.Close()
	s := New(func() bool { return true }, slog.New(slog.DiscardHandler))
	name := proxy.Name{Namespace: "default", Name: "web"}
	if err := s.Apply(t.Context(),
		proxy.Update{Health: map[proxy.Name]proxy.Health{name: {Port: port, Local: 1}}}); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := s.Apply(t.Context(), proxy.Update{}); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := ask(port); status != 200 {
		t.Errorf("got %d, want 200", status)
	}
}
