package node

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"bonsai/pkg/cluster/host"
)

// TestNodeResolvConf: what nodes find in /etc/resolv.conf.
func TestNodeResolvConf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stub, real := filepath.Join(dir, "stub"), filepath.Join(dir, "real")
	if err := os.WriteFile(stub, []byte("nameserver 127.0.0.53\noptions edns0\nsearch example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(real, []byte("nameserver 192.0.2.53\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	relay := []netip.Addr{netip.MustParseAddr("10.77.0.1")}
	for name, c := range map[string]struct {
		paths []string
		want  string
	}{
		"systemd":   {[]string{real, stub}, "nameserver 192.0.2.53\n"},
		"a stub":    {[]string{filepath.Join(dir, "nosuch"), stub}, "nameserver 10.77.0.1\n"},
		"nothing":   {nil, "nameserver 10.77.0.1\n"},
		"preferred": {[]string{stub, real}, "nameserver 192.0.2.53\n"},
	} {
		if got, err := joinedResolvConf(relay, c.paths...); err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	conf, err := host.ReadResolvConf(stub)
	if got := string(conf.With(relay)); err != nil || got != "nameserver 10.77.0.1\noptions edns0\nsearch example\n" {
		t.Errorf("%q, %v", got, err)
	}
}
