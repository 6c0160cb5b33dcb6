package plan

import (
	"net/netip"
	"strings"
	"testing"
)

// undecided is a configuration with all addresses and ports open, as `bonsai up` begins with.
func undecided() Config {
	c := Default("/data", "/bin")
	c.NodeSubnet, c.PodSubnet, c.ServiceSubnet, c.Ports = netip.Prefix{}, netip.Prefix{}, netip.Prefix{}, Ports{}
	return c
}

// TestSlots: no two slots share a network or a port, and each makes a valid cluster.
func TestSlots(t *testing.T) {
	t.Parallel()
	var networks []netip.Prefix
	ports := map[int]int{}
	for i := range slotCount {
		c := undecided().InSlot(i)
		if err := c.Validate(); err != nil {
			t.Fatal(i, err)
		}
		for _, s := range c.Networks().list() {
			for _, other := range networks {
				if other.Overlaps(s.prefix) {
					t.Fatalf("slot %d: %s overlaps %s", i, s.prefix, other)
				}
			}
			networks = append(networks, s.prefix)
		}
		for _, p := range c.Ports.onLoopback() {
			if other, taken := ports[p]; taken {
				t.Fatalf("slots %d and %d have the port %d", other, i, p)
			}
			ports[p] = i
		}
	}
}

// publishing returns c with a port mapping.
func publishing(c Config, mapping string) Config {
	m, err := ParsePortMapping(mapping)
	if err != nil {
		panic(err)
	}
	c.PortMappings = []PortMapping{m}
	return c
}

// TestPlan: what is open is put where nobody is, running or stopped; what is said and taken is refused with all that is
// taken and by whom.
func TestPlan(t *testing.T) {
	t.Parallel()
	first := Default("/first", "")
	first.Name = "first"
	free := func(netip.AddrPort) string { return "" }
	foreign := func(prefix string) HostNetwork {
		return HostNetwork{netip.MustParsePrefix(prefix), Claim{"the route to " + prefix, "the link eth1"}}
	}
	for _, c := range []struct {
		name     string
		machine  Machine
		change   func(*Config)
		wantNode string
		wantErr  []string
	}{
		{"alone", Machine{PortOwner: free}, nil, "10.77.0.0/24", nil},
		{"second", Machine{Clusters: []Config{first}, PortOwner: free}, nil, "10.77.1.0/24", nil},
		{"a VPN's wide route is no hindrance", Machine{Networks: []HostNetwork{foreign("10.0.0.0/8")}, PortOwner: free},
			nil, "10.77.0.0/24", nil},
		{"a foreign route", Machine{Networks: []HostNetwork{foreign("10.244.3.0/24")}, PortOwner: free}, nil,
			"10.77.1.0/24", nil},
		{"a foreign process", Machine{PortOwner: func(p netip.AddrPort) string {
			if p.Port() == 2379 || p.Port() == 10359 {
				return "process 1 (etcd)"
			}
			return ""
		}}, nil, "10.77.2.0/24", nil},
		{"its name", Machine{Clusters: []Config{first}, PortOwner: free}, func(c *Config) { c.Name = "first" }, "",
			[]string{"taken by the cluster in /first", "the name first"}},
		{"its context", Machine{Contexts: map[string]string{"bonsai-dev": ""}, PortOwner: free}, func(c *Config) {
			c.Name = "dev"
		}, "",
			[]string{"the context bonsai-dev", "your kubeconfig"}},
		{"a context of a cluster that is gone",
			Machine{Contexts: map[string]string{"bonsai": "/gone"}, PortOwner: free}, nil, "10.77.0.0/24", nil},
		{"its port and network", Machine{Clusters: []Config{first}, PortOwner: free}, func(c *Config) {
			c.Ports.API, c.PodSubnet = 2379, netip.MustParsePrefix("10.244.8.0/20")
		}, "", []string{"taken by the cluster in /first", "the port 127.0.0.1:2379", "the network 10.244.0.0/16"}},
		{"its published port", Machine{Clusters: []Config{publishing(first, "8080:30080")}, PortOwner: free},
			func(c *Config) {
				*c = publishing(*c, "0.0.0.0:8080:30081")
			}, "",
			[]string{"taken by the cluster in /first", "the port 0.0.0.0:8080"}},
		{"the same port at another address",
			Machine{Clusters: []Config{publishing(first, "127.0.0.2:8080:30080")}, PortOwner: free}, func(c *Config) {
				*c = publishing(*c, "8080:30080")
			}, "10.77.1.0/24", nil},
		{"a subnet said, the rest chosen around it", Machine{PortOwner: free}, func(c *Config) {
			c.ServiceSubnet = netip.MustParsePrefix("10.77.0.0/24")
		}, "10.77.1.0/24", nil},
		{"nothing free", Machine{PortOwner: func(netip.AddrPort) string {
			return "process 1 (x)"
		}}, nil, "", []string{"all 64 places", "process 1 (x)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := undecided()
			if c.change != nil {
				c.change(&want)
			}
			got, err := c.machine.Plan(want)
			if (err != nil) != (c.wantErr != nil) || err == nil && got.NodeSubnet.String() != c.wantNode {
				t.Errorf("%s, %v", got.NodeSubnet, err)
			}
			for _, w := range c.wantErr {
				if err != nil && !strings.Contains(err.Error(), w) {
					t.Errorf("no %q in: %v", w, err)
				}
			}
		})
	}
}

// TestFilledFrom: what was chosen at the first start stays.
func TestFilledFrom(t *testing.T) {
	t.Parallel()
	old := undecided().InSlot(3)
	want := undecided()
	want.Ports.API = 7443
	got := want.FilledFrom(old)
	old.Ports.API = 7443
	if got.NodeSubnet != old.NodeSubnet || got.PodSubnet != old.PodSubnet || got.ServiceSubnet != old.ServiceSubnet ||
		got.Ports != old.Ports {
		t.Errorf("%+v, not %+v", got, old)
	}
}
