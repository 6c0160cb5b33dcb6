package start

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/door"
	"bonsai/pkg/cluster/host/kernel"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/tracestore"
	"bonsai/pkg/cluster/preflight"
	"bonsai/pkg/cluster/rootless"
)

// Plan checks everything that a start needs before anything is made. It returns the cluster with values for everything
// that c leaves open, and what the check found.
func Plan(ctx context.Context, c plan.Config, home machine.Home) (plan.Config, []preflight.Finding, error) {
	found, err := Check(ctx, c)
	if err != nil {
		return c, nil, err
	}
	if err := kubeconfig.Check(ctx); err != nil {
		return c, nil, err
	}
	m, err := Survey(c, home)
	if err != nil {
		return c, nil, err
	}
	c, err = m.Plan(c)
	return c, found, err
}

// PlanJoined checks everything that a machine that joins needs before anything is made. It returns c with the port of
// its balancer, and what the check found.
func PlanJoined(ctx context.Context, c plan.Config, home machine.Home) (plan.Config, []preflight.Finding, error) {
	found, err := Check(ctx, c)
	if err != nil {
		return c, nil, err
	}
	m, err := Survey(c, home)
	if err != nil {
		return c, nil, err
	}
	if !c.HasControlPlane() {
		m.Contexts = nil // a machine that joins as a node alone writes no context into the user's kubeconfig
	}
	c, err = m.PlanJoined(c)
	return c, found, err
}

// CheckChange checks what a running cluster needs to become c. It does not ask whether ports are free, because the
// cluster has some of them itself: the supervisor finds out when it takes them.
func CheckChange(ctx context.Context, c plan.Config, home machine.Home) error {
	if _, err := Check(ctx, c); err != nil {
		return err
	}
	m, err := Survey(c, home)
	if err != nil {
		return err
	}
	if claims := m.Claimed(c); len(claims) > 0 {
		return plan.DescribeClaims(claims)
	}
	return nil
}

// Check compares this machine with what a start of c needs, so that the user can mend all of it at once: programs,
// files, images, the sources of mounts, addresses, disk space, features of the kernel, cgroups, settings and
// firewalls. It returns what it found. The error has everything without which no cluster starts.
func Check(ctx context.Context, c plan.Config) ([]preflight.Finding, error) {
	found, err := Findings(ctx, c)
	if err != nil {
		return nil, err
	}
	return found, preflight.Errors(found)
}

// Findings compares this machine with what a start of c needs. It loads kernel modules, and changes nothing else.
func Findings(ctx context.Context, c plan.Config) ([]preflight.Finding, error) {
	var errs []error
	needed := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy",
		"bonsai-network", node.IPAMPlugin}
	if plan.SendsSpans(c) {
		needed = append(needed, tracestore.Name)
	}
	for _, program := range needed {
		if !host.IsExecutable(c.Bin(program)) {
			errs = append(errs, fmt.Errorf("%s is missing (make build, or install the release again)", c.Bin(program)))
		}
	}
	for _, m := range node.MissingMounts(c) {
		errs = append(errs, m)
	}
	errs = append(errs, machine.CheckSockets(c))
	errs = append(errs, machine.ForeignAddresses(c)...)
	errs = append(errs, machine.CheckImages(c)...)
	errs = append(errs, machine.CheckSpace(c))
	if door.IsInside() && c.IsJoinable() {
		errs = append(errs, errors.New("--advertise-address: nodes on other machines need root (sudo bonsai up): their pods "+
			"are reached by routes of this machine"))
	}
	needs := needsOf(c)
	account, err := owner(ctx)
	if err != nil {
		return nil, err
	}
	m, err := preflight.Read(ctx, preflight.Wanted{
		Needs:    needs,
		Account:  account,
		Programs: programs(c),
		Features: kernel.Needs(host.Snapshotter(host.Existing(c.DataDir)) == host.OverlaySnapshotter,
			c.IPFamily.IptablesPrograms(), ipvsScheduler(c.ComponentFlags["kube-proxy"])),
		DataDir: c.DataDir,
		Written: []string{c.Bin("bonsai"), c.Layout().Config()},
	})
	if err != nil {
		return nil, fmt.Errorf("look at this machine: %w", err)
	}
	return append(preflight.Inspect(m, needs), preflight.Refused("cluster", errs...)...), nil
}

// needsOf returns what the checks of a machine ask about c.
func needsOf(c plan.Config) preflight.Needs {
	link := c.Mark()
	if c.Joined != nil {
		link = plan.PodBridge
	}
	// A new cluster's ports are still open. It takes these unless others have them.
	ports := c.InSlot(0).Ports
	return preflight.Needs{Nodes: len(c.Nodes), Egress: c.Egress, Link: link,
		Others:  c.Joined != nil || c.IsJoinable(),
		APIPort: ports.API, EtcdClientPort: ports.EtcdClient, EtcdPeerPort: ports.EtcdPeer}
}

// ipvsScheduler returns the scheduler of a kube-proxy that has these flags; "" unless it uses IPVS.
func ipvsScheduler(flags map[string]string) string {
	if flags["proxy-mode"] != "ipvs" {
		return ""
	}
	return cmp.Or(flags["ipvs-scheduler"], "rr")
}

// Account describes a user who runs clusters without being root.
func Account(ctx context.Context, u rootless.User) preflight.Account {
	a := preflight.Account{Name: u.Name, UID: u.UID, Least: rootless.LeastIDs,
		SubUIDs:  rootless.CountIDs("/etc/subuid", u.Name, u.UID),
		SubGIDs:  rootless.CountIDs("/etc/subgid", u.Name, u.UID),
		Programs: []preflight.Program{{Name: "newuidmap"}, {Name: "newgidmap"}, {Name: "nsenter"}}}
	for _, name := range rootless.Networks() {
		a.Networks = append(a.Networks, preflight.Program{Name: name})
	}
	return preflight.ReadAccount(ctx, a, u.Runtime)
}

// owner describes the user in whose namespaces this process runs; nil: it runs as root of the machine.
func owner(ctx context.Context) (*preflight.Account, error) {
	if !door.IsInside() {
		return nil, nil
	}
	u, err := rootless.Owner()
	if err != nil {
		return nil, err
	}
	a := Account(ctx, u)
	return &a, nil
}

// programs returns the programs of others that a cluster executes. A node sees them at the same places. bridge stands
// for all CNI plug-ins.
func programs(c plan.Config) []preflight.Program {
	var all []preflight.Program
	for _, name := range []string{"ip", "nft", "mount", cmp.Or(c.OCIRuntime, plan.DefaultOCIRuntime), node.Containerd,
		node.CTR} {
		all = append(all, preflight.Program{Name: name})
	}
	plugin := filepath.Join(node.PluginDir(c.BinDir, c.Programs), "bridge")
	return append(all, preflight.Program{Name: preflight.CNIPlugins, Path: plugin})
}

// Survey finds everything on this machine that the cluster could collide with. It changes nothing.
func Survey(c plan.Config, home machine.Home) (plan.Machine, error) {
	contexts, err := kubeconfig.Owners()
	if err != nil {
		return plan.Machine{}, err
	}
	all, err := home.Clusters(slices.Collect(maps.Values(contexts)))
	if err != nil {
		return plan.Machine{}, err
	}
	return machine.Survey(c, all, contexts)
}
