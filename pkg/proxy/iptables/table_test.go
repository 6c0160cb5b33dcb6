package iptables_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/proxy"
	"bonsai/pkg/proxy/iptables"
)

// fakeTool remembers what was restored, and has the chains that were.
type fakeTool struct {
	restored []string
	chains   map[string]bool
	inserted int
	fail     error
}

func (f *fakeTool) Restore(_ context.Context, rules []byte) error {
	f.restored = append(f.restored, string(rules))
	if f.fail != nil {
		return f.fail
	}
	table := ""
	for line := range strings.Lines(string(rules)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "*"):
			table = line[1:]
		case strings.HasPrefix(line, ":"):
			f.chains[table+" "+strings.Fields(line[1:])[0]] = true
		case strings.HasPrefix(line, "-X "):
			delete(f.chains, table+" "+line[3:])
		}
	}
	return nil
}

func (f *fakeTool) Save(_ context.Context, table string) ([]byte, error) {
	var out strings.Builder
	for c := range f.chains {
		if name, ok := strings.CutPrefix(c, table+" "); ok {
			fmt.Fprintf(&out, ":%s - [0:0]\n", name)
		}
	}
	return []byte(out.String()), nil
}

func (f *fakeTool) Run(_ context.Context, args ...string) error {
	switch args[2] {
	case "-C":
		return errors.New("no such rule")
	case "-I":
		f.inserted++
	case "-S":
		if !f.chains[args[1]+" "+args[3]] {
			return errors.New("no such chain")
		}
	}
	return nil
}

// last is the latest script.
func (f *fakeTool) last() string { return f.restored[len(f.restored)-1] }

func port(name, ip string, endpoints ...string) map[proxy.Name][]proxy.Port {
	n := proxy.Name{Namespace: "default", Name: name}
	p := proxy.Port{Service: n, PortName: "http", Protocol: corev1.ProtocolTCP, ClusterIP: netip.MustParseAddr(ip),
		Number: 80}
	for _, e := range endpoints {
		p.Cluster = append(p.Cluster, netip.MustParseAddrPort(e))
	}
	return map[proxy.Name][]proxy.Port{n: {p}}
}

// TestRounds: the first round writes everything, further ones only what has changed, and one after an error or after
// somebody removed the rules everything again.
func TestRounds(t *testing.T) {
	t.Parallel()
	tool := &fakeTool{chains: map[string]bool{"nat KUBE-SEP-AAAAAAAAAAAAAAAA": true, "nat MINE": true}}
	now := time.Unix(0, 0)
	var rounds []iptables.Round
	table := iptables.New(tool, false, iptables.Config{Now: func() time.Time {
		return now
	}, Wrote: func(r iptables.Round) { rounds = append(rounds, r) }}, slog.New(slog.DiscardHandler))
	apply := func(services map[proxy.Name][]proxy.Port, want error) iptables.Round {
		t.Helper()
		if err := table.Apply(t.Context(), proxy.Update{Services: services}); !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
		return rounds[len(rounds)-1]
	}
	both := port("a", "10.96.0.1", "10.244.0.1:80")
	for n, p := range port("b", "10.96.0.2", "10.244.0.2:80", "10.244.0.3:80") {
		both[n] = p
	}
	if r := apply(both, nil); !r.Full || r.Last["nat"] != r.Total["nat"] || tool.inserted != 12 {
		t.Errorf("first round: %+v, %d jumps", r, tool.inserted)
	}
	if tool.chains["nat KUBE-SEP-AAAAAAAAAAAAAAAA"] || !tool.chains["nat MINE"] {
		t.Error("an earlier proxy's chain stayed, or somebody else's went")
	}
	if !strings.Contains(tool.last(),
		`-A KUBE-SERVICES -m comment --comment "default/a:http cluster IP" -m tcp -p tcp --dport 80 -d 10.96.0.1/32 -j KUBE-SVC-`) {
		t.Error(tool.last())
	}
	if r := apply(port("b", "10.96.0.2", "10.244.0.2:80"), nil); r.Full || strings.Contains(tool.last(), "default/a") ||
		strings.Contains(tool.last(), ":KUBE-SERVICES") ||
		strings.Count(tool.last(), "-X KUBE-SEP-") != 1 || r.Last["nat"] != 1 {
		t.Errorf("one endpoint less: %+v\n%s", r, tool.last())
	}
	if r := apply(port("b", "10.96.0.2"), nil); r.Full || !strings.Contains(tool.last(), "has no endpoints") ||
		strings.Count(tool.last(), "-X ") != 2 {
		t.Errorf("no endpoints: %+v\n%s", r, tool.last())
	}
	writes := len(tool.restored)
	if r := apply(nil, nil); r.Full || len(tool.restored) != writes {
		t.Errorf("nothing changed: %+v", r)
	}
	delete(tool.chains, "nat KUBE-PROXY-CANARY")
	if r := apply(nil, nil); !r.Full {
		t.Errorf("somebody flushed: %+v", r)
	}
	tool.fail = errors.New("the kernel said no")
	if r := apply(port("b", "10.96.0.2", "10.244.0.2:80"), tool.fail); r.Full || r.Err == nil {
		t.Errorf("an error: %+v", r)
	}
	tool.fail = nil
	if r := apply(nil, nil); !r.Full || !strings.Contains(tool.last(), "10.244.0.2:80") {
		t.Errorf("after an error: %+v\n%s", r, tool.last())
	}
	now = now.Add(time.Hour)
	if r := apply(nil, nil); !r.Full {
		t.Errorf("after an hour: %+v", r)
	}
	gone := map[proxy.Name][]proxy.Port{{Namespace: "default", Name: "a"}: nil, {Namespace: "default", Name: "b"}: nil}
	apply(gone, nil)
	for c := range tool.chains {
		if strings.Contains(c, "KUBE-SVC-") || strings.Contains(c, "KUBE-SEP-") {
			t.Errorf("%s is left", c)
		}
	}
}

// TestPodInterface: pods are known by their interface, in place of their addresses.
func TestPodInterface(t *testing.T) {
	t.Parallel()
	for name, match := range map[string]string{"br0": "-i br0 -j", "veth*": "-i veth+ -j"} {
		tool := &fakeTool{chains: map[string]bool{}}
		config := iptables.Config{PodInterface: name,
			ClusterCIDRs: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}, Now: time.Now,
			Wrote: func(iptables.Round) {}}
		services := port("web", "10.96.0.1", "10.244.0.2:80")
		for _, ports := range services {
			ports[0].NodePort, ports[0].ExternalLocal = 30080, true
		}
		if err := iptables.New(tool, false, config, slog.New(slog.DiscardHandler)).Apply(t.Context(),
			proxy.Update{Services: services}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"-d 10.96.0.1/32 ! " + match + " KUBE-MARK-MASQ",
			`external destinations" ` + match + " KUBE-SVC-"} {
			if !strings.Contains(tool.last(), want) || strings.Contains(tool.last(), "10.244.0.0/16") {
				t.Errorf("%s: no rule %q, or others:\n%s", name, want, tool.last())
			}
		}
	}
}

// TestMarkAndPrimary: packets are marked with the bit that is asked for, and node ports may be kept to the node's own
// addresses.
func TestMarkAndPrimary(t *testing.T) {
	t.Parallel()
	tool := &fakeTool{chains: map[string]bool{}}
	table := iptables.New(tool, false,
		iptables.Config{MasqueradeMark: 1 << 7, Primary: true, Now: time.Now, Wrote: func(iptables.Round) {}},
		slog.New(slog.DiscardHandler))
	u := proxy.Update{Services: port("web", "10.96.0.1", "10.244.0.2:80"),
		Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}
	if err := table.Apply(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"-j MARK --or-mark 0x80", "! --mark 0x80/0x80 -j RETURN", "--xor-mark 0x80",
		"-m mark --mark 0x80/0x80 -j ACCEPT", "-d 192.0.2.1/32 -j KUBE-NODEPORTS"} {
		if !strings.Contains(tool.last(), want) {
			t.Errorf("no rule %q:\n%s", want, tool.last())
		}
	}
	if strings.Contains(tool.last(), "0x4000") || strings.Contains(tool.last(), "--dst-type LOCAL -j KUBE-NODEPORTS") {
		t.Errorf("other rules, too:\n%s", tool.last())
	}
}

// TestHealthCheckPorts: load balancers may ask at the health check ports of all services that have one, whichever
// services a round is about.
func TestHealthCheckPorts(t *testing.T) {
	t.Parallel()
	tool := &fakeTool{chains: map[string]bool{}}
	now := time.Unix(0, 0)
	table := iptables.New(tool, false, iptables.Config{Now: func() time.Time {
		return now
	}, Wrote: func(iptables.Round) {}}, slog.New(slog.DiscardHandler))
	a, b := proxy.Name{Namespace: "default", Name: "a"}, proxy.Name{Namespace: "default", Name: "b"}
	const accepted = `-A KUBE-NODEPORTS -m comment --comment "default/a health check node port" -m tcp -p tcp --dport 31000 -j ACCEPT`
	for _, c := range []struct {
		step   string
		health map[proxy.Name]proxy.Health
		want   string // of the chain
	}{
		{"two services, one with a port", map[proxy.Name]proxy.Health{a: {Port: 31000, Local: 1}, b: {}}, accepted},
		{"the other one changes", map[proxy.Name]proxy.Health{b: {}}, accepted},
		{"nothing changes", nil, accepted},
		{"it goes", map[proxy.Name]proxy.Health{a: {}}, ""},
	} {
		if err := table.Apply(t.Context(), proxy.Update{Health: c.health}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour) // everything is written in the next round
		if err := table.Apply(t.Context(), proxy.Update{}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for line := range strings.Lines(tool.last()) {
			if strings.HasPrefix(line, "-A KUBE-NODEPORTS ") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if strings.Join(got, "\n") != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.step, strings.Join(got, "\n"), c.want)
		}
	}
}

// TestSourceRangesWithoutEndpoints: a client that the source ranges allow is told that nobody answers, as at the
// cluster IP.
func TestSourceRangesWithoutEndpoints(t *testing.T) {
	t.Parallel()
	tool := &fakeTool{chains: map[string]bool{}}
	services := port("web", "10.96.0.1")
	for _, ports := range services {
		ports[0].LoadBalancerIPs, ports[0].SourceRanges = []netip.Addr{netip.MustParseAddr("203.0.113.1")},
			[]netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	}
	table := iptables.New(tool, false, iptables.Config{Now: time.Now, Wrote: func(iptables.Round) {}},
		slog.New(slog.DiscardHandler))
	if err := table.Apply(t.Context(), proxy.Update{Services: services}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(tool.last(), "-A KUBE-PROXY-FIREWALL") ||
		!strings.Contains(tool.last(), "-d 203.0.113.1/32 -j REJECT") {
		t.Errorf("an allowed client is left without an answer:\n%s", tool.last())
	}
}
