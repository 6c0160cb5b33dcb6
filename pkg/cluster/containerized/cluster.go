package containerized

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"bonsai/pkg/cluster/addon"
	"bonsai/pkg/cluster/client"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
)

// New returns the cluster of deploy/compose. The programs of its control planes and its nodes are containers in one
// network, where the balancer is .1, the API servers are .2 and .3 and the nodes .11 to .13; etcds find each other by
// their names. In each container dataDir is a volume with the files that this one needs, and binDir has the programs.
func New(dataDir, binDir string, network netip.Prefix) (plan.Config, error) {
	c := plan.Config{Name: plan.DefaultName, DataDir: dataDir, BinDir: binDir, Nodes: plan.NodesUpTo(3),
		ControlPlanes: plan.MaxControlPlanes, Egress: true, EncryptSecrets: true,
		Containerized: true, NodeSubnet: network}.InSlot(0)
	if network.Bits() != 24 {
		return c, fmt.Errorf("--network: must be a /24, not %s", network)
	}
	return c, c.Validate()
}

// Administer installs the add-ons, waits until all nodes are Ready, and then gives the user a kubeconfig at path that
// leads to server. It removes the file when ctx ends: the cluster goes with it.
func Administer(ctx context.Context, c plan.Config, server, path string, log *slog.Logger) (err error) {
	if err := client.WaitReady(ctx, c); err != nil {
		return err
	}
	log.Info("the API server is ready")
	if err := addon.Install(ctx, c); err != nil {
		return fmt.Errorf("install the add-ons: %w", err)
	}
	if err := client.WaitNodes(ctx, c); err != nil {
		return err
	}
	log.Info("all nodes are Ready")
	defer func() { err = errors.Join(err, host.IgnoreMissing(os.Remove(path))) }()
	if err := giveKubeconfig(c, server, path); err != nil {
		return fmt.Errorf("give the user a kubeconfig: %w", err)
	}
	// The kubeconfig stays until the cluster ends; the deferred call removes it.
	<-ctx.Done()
	return nil
}

// giveKubeconfig writes the administrator's kubeconfig to path, leading to server. Only the owner of the directory,
// which is the user's own, may read the file.
func giveKubeconfig(c plan.Config, server, path string) error {
	k, err := clientcmd.LoadFromFile(c.Layout().Kubeconfig(plan.Administrator))
	if err != nil {
		return err
	}
	for _, to := range k.Clusters {
		to.Server = server
	}
	data, err := clientcmd.Write(*k)
	if err != nil {
		return err
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	owner, ok := dir.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: %w", dir.Name(), fs.ErrInvalid)
	}
	if err := host.WriteFile(path, data); err != nil {
		return err
	}
	return os.Chown(path, int(owner.Uid), int(owner.Gid))
}
