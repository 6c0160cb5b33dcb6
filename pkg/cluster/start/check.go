package start

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/host/kernel"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
)

// Plan checks everything that a start needs before anything is made. It returns the cluster with values for everything
// that c leaves open.
func Plan(ctx context.Context, c plan.Config, home machine.Home) (plan.Config, error) {
	if err := Check(ctx, c); err != nil {
		return c, err
	}
	if err := kubeconfig.Check(ctx); err != nil {
		return c, err
	}
	m, err := Survey(c, home)
	if err != nil {
		return c, err
	}
	return m.Plan(c)
}

// CheckJoining checks everything that a node needs of this machine before anything is made.
func CheckJoining(ctx context.Context, c plan.Config, home machine.Home) error {
	if err := Check(ctx, c); err != nil {
		return err
	}
	m, err := Survey(c, home)
	if err != nil {
		return err
	}
	m.Contexts = nil // a machine that joins writes no context into the user's kubeconfig
	if claims := m.Collisions(c); len(claims) > 0 {
		return plan.DescribeClaims(claims)
	}
	return nil
}

// CheckChange checks what a running cluster needs to become c. It does not ask whether ports are free, because the
// cluster has some of them itself: the supervisor finds out when it takes them.
func CheckChange(ctx context.Context, c plan.Config, home machine.Home) error {
	if err := Check(ctx, c); err != nil {
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

// Check returns an error for everything that a start needs and this machine lacks, so that the user can mend all of it
// at once: programs, files, images, the sources of mounts, addresses, disk space and features of the kernel. It loads
// kernel modules, and changes nothing else.
func Check(ctx context.Context, c plan.Config) error {
	var errs []error
	for _, program := range []string{"ip", "nft", cmp.Or(c.OCIRuntime, plan.DefaultOCIRuntime), "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			errs = append(errs, fmt.Errorf("the program %s is missing (make install)", program))
		}
	}
	errs = append(errs, node.CheckInstalled(c.BinDir)...)
	for _, program := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet",
		"kube-proxy", "bonsai-network", node.IPAMPlugin} {
		if !host.IsExecutable(c.Bin(program)) {
			errs = append(errs, fmt.Errorf("%s is missing (make build)", c.Bin(program)))
		}
	}
	for _, m := range node.MissingMounts(c) {
		errs = append(errs, m)
	}
	errs = append(errs, machine.CheckSockets(c))
	errs = append(errs, machine.ForeignAddresses(c)...)
	errs = append(errs, machine.CheckImages(c)...)
	return errors.Join(append(errs, machine.CheckSpace(c), kernel.CheckControllers(cgroup.Root),
		kernel.Check(ctx, kernel.Needs(host.Snapshotter(host.Existing(c.DataDir)) == host.OverlaySnapshotter,
			c.IPFamily.IptablesPrograms()), kernel.LoadModule))...)
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
