package cluster

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/cluster/start"
)

// TestOwners: of two clusters, the second sees what the first has, names it, and removes nothing of it; the first
// leaves nothing. It runs in a network namespace of its own.
func TestOwners(t *testing.T) {
	if _, err := exec.LookPath("nft"); err != nil || os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root, ip and nft")
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	runtime.LockOSThread() // never unlocked: the thread's namespace ends with it
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("SKIPPED: no network namespace: %v", err)
	}
	ctx := t.Context()
	first, second := plantest.Config(t), plantest.Config(t)
	first.Egress, second.Egress = false, false
	state := func() string {
		var out strings.Builder
		for _, args := range [][]string{{"ip", "-br", "link"}, {"ip", "route"}, {"nft", "list", "ruleset"},
			{"ls", "/run/netns/" + first.Mark()}} {
			data, err := exec.Command(args[0], args[1:]...).CombinedOutput()
			if err != nil && args[0] == "ls" {
				continue // the namespace is not there
			}
			if err != nil {
				t.Fatal(string(data), err)
			}
			out.Write(data)
		}
		return out.String()
	}
	mine := func() bool { return strings.Contains(state(), first.Mark()) }
	if err := network.Make(ctx, first); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Remove(ctx, first) })
	if err := network.RouteThrough(first, first.Networks().Balancers(),
		[]netip.Addr{netip.MustParseAddr("10.77.0.11"), netip.MustParseAddr("10.77.0.12")}); err != nil {
		t.Fatal(err)
	}
	// A node that joined from another machine is reached over a link that does not go with the cluster.
	for _, args := range []string{"link add far type veth peer name near", "addr add 192.0.2.1/24 dev far",
		"link set near up", "link set far up"} {
		if err := host.IP(ctx, strings.Fields(args)...); err != nil {
			t.Fatal(err)
		}
	}
	advertised := first
	advertised.AdvertiseAddress = netip.MustParseAddr("192.0.2.1")
	joined := &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "10.244.9.0/24"},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.7"}}}}
	if err := network.RouteToPods(advertised, joined); err != nil ||
		!strings.Contains(state(), "10.244.9.0/24 via 192.0.2.7") {
		t.Fatalf("%v\n%s", err, state())
	}
	planned := func(c plan.Config) (plan.Config, error) {
		m, err := start.Survey(c, machine.Home(t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		return m.Plan(c)
	}
	if _, err := planned(first); err != nil {
		t.Errorf("the cluster's own network is in its way: %v", err)
	}
	third := plan.Config{Name: "third", DataDir: "/data", BinDir: "/bin", Nodes: plan.NodesUpTo(1), ControlPlanes: 1,
		Egress: true}
	if third, err := planned(third); err != nil || third.NodeSubnet.String() != "10.77.1.0/24" {
		t.Errorf("a third cluster is at %s, %v", third.NodeSubnet, err)
	}
	// The kernel tells the first of two linked ends a little later that the second is up.
	if err := host.Poll(ctx, 10*time.Millisecond, func() (bool, error) {
		return !strings.Contains(state(), "NO-CARRIER"), nil
	}); err != nil {
		t.Fatal(err)
	}
	before := state()
	if _, err := planned(second); err == nil {
		t.Fatal("the second cluster finds everything free")
	}
	_, err := planned(second)
	for _, want := range []string{"the cluster in " + first.DataDir, "the address 10.77.0.1/24",
		"the route to 10.96.0.0/16"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if err := start.CleanUp(ctx, second); err != nil {
		t.Error(err)
	}
	if after := state(); after != before {
		t.Errorf("the second cluster changed the machine; before:\n%s\nafter:\n%s", before, after)
	}
	// The addresses of a subnet without its link, and of services, are rejected at once instead of following a default
	// route.
	if err := host.Run(ctx, "", "ip", "link", "del", first.Mark()); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"10.77.0.1", "10.244.3.4", "10.96.0.10"} {
		out, err := exec.Command("ip", "route", "get", address).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "No route to host") &&
			!strings.Contains(string(out), "unreachable") {
			t.Errorf("%s goes to %s", address, out)
		}
	}
	for range 2 { // removing twice, or what is there only in part, is fine
		if err := network.Remove(ctx, first); err != nil {
			t.Error(err)
		}
	}
	if mine() || machine.HasMarked(first.Mark()) {
		t.Errorf("left behind:\n%s", state())
	}
	if strings.Contains(state(), "unreachable") || strings.Contains(state(), "192.0.2.7") {
		t.Errorf("routes are left:\n%s", state())
	}
	if _, err := planned(second); err != nil {
		t.Errorf("all is free: %v", err)
	}
}
