package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/host/kernel"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
)

// preflight checks that the programs, files, disk space and features of the kernel that a start needs are there. It
// loads kernel modules, and makes nothing else.
func preflight(ctx context.Context, c plan.Config) error {
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
