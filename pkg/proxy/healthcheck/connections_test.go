package healthcheck

import (
	"fmt"
	"log/slog"
	"testing"

	"bonsai/pkg/connlimit"
	"bonsai/pkg/connlimit/connlimittest"
	"bonsai/pkg/proxy"
)

// TestFloodOfConnections: the ports of all services together have one bound of connections. Load balancers get their
// answers meanwhile.
func TestFloodOfConnections(t *testing.T) {
	t.Parallel()
	one, l := freePort(t)
	two, m := freePort(t)
	l.Close()
	m.Close()
	s := New(func() bool { return true }, slog.New(slog.DiscardHandler))
	const most = 64 // few enough to be there before a silent connection has to say something
	s.limit = connlimit.NewUntrusted(connlimit.UntrustedConfig{Most: most, Bytes: maxReceived})
	if err := s.Apply(t.Context(), proxy.Update{Health: map[proxy.Name]proxy.Health{
		{Namespace: "default", Name: "one"}: {Port: one, Local: 1},
		{Namespace: "default", Name: "two"}: {Port: two, Local: 1}}}); err != nil {
		t.Fatal(err)
	}
	conns := connlimittest.Flood(t, fmt.Sprintf("127.0.0.1:%d", one), most)
	conns = append(conns, connlimittest.Flood(t, fmt.Sprintf("127.0.0.1:%d", two), 10)...)
	connlimittest.WantClosed(t, conns, 10)
	if status, body, _ := ask(two); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}
