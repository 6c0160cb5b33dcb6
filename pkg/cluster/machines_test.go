package cluster

import (
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/balancer"
	"bonsai/pkg/cluster/controlplane"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
)

// joinedControlPlane is a machine that has joined joinableConfig's cluster with a control plane.
func joinedControlPlane() plan.Config {
	c := plan.Default("/data", "/bin")
	c.Nodes = []plan.Node{{Number: 1, Hostname: "m2"}}
	c.AdvertiseAddress, c.Extensible = netip.MustParseAddr("192.0.2.2"), true
	c.Joined = &plan.Joined{Server: netip.MustParseAddrPort("192.0.2.1:6443"), Address: c.AdvertiseAddress,
		Gateway: netip.MustParseAddr("192.0.2.1"), ControlPlane: true,
		InitialCluster: "bonsai=https://192.0.2.1:2380,m2=https://192.0.2.2:2380"}
	c.Peers = []plan.Peer{joinableConfig().Etcd().Peer, c.Etcd().Peer}
	return c
}

// TestBackends: the balancer of a joined machine finds all API servers in its file, or the user's own balancer.
func TestBackends(t *testing.T) {
	t.Parallel()
	c := joinedControlPlane()
	c.DataDir = t.TempDir()
	if err := os.Mkdir(c.Layout().Run(), 0o700); err != nil {
		t.Fatal(err)
	}
	for endpoint, want := range map[string]string{"": "192.0.2.1:6443 192.0.2.2:6443", "api.example:443": "api.example:443"} {
		c.ControlPlaneEndpoint = endpoint
		if err := controlplane.WriteBackends(c); err != nil {
			t.Fatal(err)
		}
		if got, err := balancer.ReadFile(c.Layout().Backends()); err != nil || strings.Join(got, " ") != want {
			t.Errorf("%q: %v, %v, not %s", endpoint, got, err, want)
		}
	}
}

// TestControlPlaneOfMachine: a joined machine's control plane listens at the machine's address, its etcd on loopback
// behind doors, and all that it runs finds an API server by the balancer. The node needs no approval.
func TestControlPlaneOfMachine(t *testing.T) {
	t.Parallel()
	c := joinedControlPlane()
	layers := controlplane.Processes(c, "/bin/bonsai")
	stores, servers, clients := layers[0], layers[1], layers[2]
	balance := controlplane.Balancer(c, "/bin/bonsai")
	for got, want := range map[string]string{
		flag(stores[0], "name"):                        "m2",
		flag(stores[0], "listen-client-urls"):          "https://127.0.0.1:2379",
		flag(stores[0], "listen-peer-urls"):            "https://127.0.0.1:2380",
		flag(stores[0], "advertise-client-urls"):       "https://192.0.2.2:2379",
		flag(stores[0], "initial-advertise-peer-urls"): "https://192.0.2.2:2380",
		flag(stores[0], "initial-cluster"):             c.Joined.InitialCluster,
		flag(stores[0], "initial-cluster-state"):       "existing",
		flag(servers[0], "bind-address"):               "192.0.2.2",
		flag(servers[0], "advertise-address") + " ":    "192.0.2.2 ",
		flag(clients[0], "leader-elect"):               "true",
		flag(clients[1], "leader-elect") + " ":         "true ",
		flag(balance, "listen"):                        "127.0.0.1:6443",
		strings.Join(balance.Argv[4:], " "):            "--backends-file=" + c.Layout().Backends(),
		c.Server():                                     "https://127.0.0.1:6443",
		c.LocalServer() + " ":                          "https://127.0.0.1:6443 ",
		c.Identity():                                   plan.Administrator,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if len(stores) != 1 || len(servers) != 1 || len(clients) != 2 {
		t.Errorf("%d, %d and %d processes", len(stores), len(servers), len(clients))
	}
	for _, at := range []string{"192.0.2.2:6443", "192.0.2.2:2379", "192.0.2.2:2380", "127.0.0.1:6443", "0.0.0.0:10250"} {
		if !slices.Contains(c.Listening(), netip.MustParseAddrPort(at)) {
			t.Errorf("%s is not among %v", at, c.Listening())
		}
	}
	if n := node.Of(c, c.Nodes[0]); !n.Joined || n.Bootstraps {
		t.Errorf("the node bootstraps: %+v", n)
	}
	addresses := map[string][]netip.Addr{}
	for _, row := range pki.Certificates(c) {
		addresses[row.Name] = row.IPs
	}
	for name, want := range map[string]string{"etcd": "192.0.2.2", "apiserver": "192.0.2.2", "kubelet-server-m2": "192.0.2.2"} {
		if !slices.Contains(addresses[name], netip.MustParseAddr(want)) {
			t.Errorf("%s is not in the certificate of %s: %v", want, name, addresses[name])
		}
	}
	// The first machine's addresses are not this one's.
	if slices.Contains(addresses["apiserver"], c.Networks().HostIP()) {
		t.Errorf("the API server has a certificate for the first machine's: %v", addresses["apiserver"])
	}
}

// TestFirstMachine: a joinable cluster is ready for others, and opens etcd's doors only when it takes them.
func TestFirstMachine(t *testing.T) {
	t.Parallel()
	c := joinableConfig()
	etcd := controlplane.Processes(c, "/bin/bonsai")[0][0]
	for got, want := range map[string]string{
		flag(etcd, "listen-peer-urls"):            "https://127.0.0.1:2380",
		flag(etcd, "initial-advertise-peer-urls"): "https://192.0.2.1:2380",
		flag(etcd, "initial-cluster"):             "bonsai=https://192.0.2.1:2380",
		flag(etcd, "initial-cluster-state"):       "",
		flag(etcd, "election-timeout"):            "1000",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if doors := c.Etcd().Doors; len(doors) != 0 {
		t.Errorf("etcd is open: %v", doors)
	}
	c.Extensible = true
	if doors := c.Etcd().Doors; len(doors) != 2 || doors[0].Listens().String() != "192.0.2.1:2379" {
		t.Errorf("etcd's doors: %v", doors)
	}
	c.ControlPlaneEndpoint = "api.example.com:7443"
	if err := c.Validate(); err != nil || c.AdvertisedServer() != "https://api.example.com:7443" {
		t.Errorf("%s, %v", c.AdvertisedServer(), err)
	}
	if !slices.Contains(pki.ServerNames(c), "api.example.com") {
		t.Errorf("the certificates are for %v", pki.ServerNames(c))
	}
	for _, bad := range []string{"api.example.com", "api.example.com:0", "no name:6443", ":6443"} {
		c.ControlPlaneEndpoint = bad
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "--control-plane-endpoint") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestLeaveAlone: a machine whose cluster has no other control planes asks nobody before it goes, and one that has
// leaves only if the others let it go.
func TestLeaveAlone(t *testing.T) {
	t.Parallel()
	worker := joinedControlPlane()
	worker.Joined.ControlPlane = false
	alone := joinableConfig()
	alone.Extensible, alone.Peers = true, []plan.Peer{alone.Etcd().Peer}
	for _, c := range []plan.Config{plan.Default("/data", "/bin"), alone, worker} {
		if err := leaveFirst(t.Context(), c, false, io.Discard); err != nil {
			t.Error(err)
		}
	}
	c := joinedControlPlane()
	c.DataDir = t.TempDir() // without certificates nobody answers
	if err := leaveFirst(t.Context(), c, false, io.Discard); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("left without the others: %v", err)
	}
	var out strings.Builder
	if err := leaveFirst(t.Context(), c, true, &out); err != nil ||
		!strings.Contains(out.String(), "bonsai node remove m2") {
		t.Errorf("%v: %s", err, &out)
	}
}
