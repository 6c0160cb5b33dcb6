package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestEnviron: a cluster's processes inherit what is the machine's, and nothing of a user's session.
func TestEnviron(t *testing.T) {
	t.Parallel()
	kept := []string{"PATH=/bin", "HOME=/root", "TZ=UTC", "https_proxy=", "GODEBUG=x=1", "BONSAI_HOME=/data"}
	session := []string{"XDG_RUNTIME_DIR=/run/user/0", "TMPDIR=/run/user/0/tmp",
		"ETCD_NAME=mine", "KUBECONFIG=/x",
		"NOTIFY_SOCKET=/run/systemd/notify",
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/x", "SSH_AUTH_SOCK=/x", "PATHS=x"}
	got := Default("/data", "/bin").Environ(slices.Concat(session[:4], kept, session[4:]))
	if !slices.Equal(got, kept) {
		t.Errorf("%q", got)
	}
}

func TestWithoutProxies(t *testing.T) {
	t.Parallel()
	c, joined := Default("/data", "/bin"), Default("/data", "/bin")
	joined.Joined = &Joined{Server: netip.MustParseAddrPort("192.0.2.1:6443")}
	const own = "localhost,127.0.0.0/8,::1,.svc,.cluster.local,10.77.0.0/24,10.244.0.0/16,10.96.0.0/16"
	for name, want := range map[string]struct {
		c       Config
		environ string
		direct  string
	}{
		"no proxy":      {c, "PATH=/bin NO_PROXY=a", "a"},
		"an empty one":  {c, "HTTP_PROXY= PATH=/bin", ""},
		"a proxy":       {c, "HTTP_PROXY=http://p:1", own},
		"in lower case": {c, "https_proxy=http://p:1", own},
		"exceptions are kept": {c, "HTTPS_PROXY=http://p:1 NO_PROXY=example.org,.corp no_proxy=10.0.0.0/8",
			"example.org,.corp,10.0.0.0/8," + own},
		"a joined machine": {joined, "ALL_PROXY=socks5://p:1", own + ",192.0.2.1"},
	} {
		got := want.c.Environ(strings.Fields(want.environ))
		if !slices.Equal(got[:len(strings.Fields(want.environ))], strings.Fields(want.environ)) {
			t.Errorf("%s: the environment is %v", name, got)
		}
		direct := ""
		for _, e := range got {
			if v, ok := strings.CutPrefix(e, "NO_PROXY="); ok {
				direct = v
			}
		}
		if again := want.c.Environ(got); len(got) > len(strings.Fields(want.environ)) &&
			again[len(again)-1] != "no_proxy="+direct {
			t.Errorf("%s: the second time it is %s", name, again[len(again)-1])
		}
		if direct != want.direct {
			t.Errorf("%s: NO_PROXY is %s, not %s", name, direct, want.direct)
		}
	}
}
