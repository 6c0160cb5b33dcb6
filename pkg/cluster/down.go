package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/snapshot"
	"bonsai/pkg/cluster/start"
	"bonsai/pkg/cluster/steps"
	"bonsai/pkg/cluster/teardown"
)

// Down stops the cluster in dataDir and removes everything it made: processes, namespaces, links, routes, packet rules,
// loop devices, cgroups, the context in the user's kubeconfig and, unless keepData, the data directory. found is false
// if there was no cluster.
//
// It finds these things by the cluster's mark. So it also works after a supervisor or nodes were killed, and with a
// data directory that cannot be read any more. It takes all steps even if one fails, and keeps the data directory in
// that case: the user can repeat the command. If ctx ends before the processes have, they keep the rest.
//
// A machine with one of several machines' control planes first leaves the others, unless its data stays. If they cannot
// let it go, or the configuration of such a machine cannot be read, Down removes nothing, unless force says otherwise.
func Down(ctx context.Context, dataDir string, keepData, force bool, out io.Writer) (found bool, err error) {
	lock, err := machine.Lock(ctx) // a start at the same time would make again what is removed here
	if err != nil {
		return false, err
	}
	defer lock.Close()
	c, err := datadir.Load(dataDir)
	missing := errors.Is(err, os.ErrNotExist)
	if err != nil {
		c = plan.Default(dataDir, "")
	}
	ours := !missing || datadir.IsLeftover(dataDir, snapshot.Restoring, snapshot.Restored)
	if !ours && !machine.HasMarked(c.Mark()) {
		_ = syscall.Rmdir(dataDir) // a start that was killed at its first step leaves an empty directory
		return false, nil
	}
	if !missing && err != nil && !keepData && !force && host.StatError(c.Layout().Peers()) == nil {
		return true, fmt.Errorf("%w. This machine may have a control plane beside those of other machines, and its etcd "+
			"member would still count for their majority. Nothing was removed here: repair the file, or go on with "+
			"bonsai down --force", err)
	}
	if !missing && err == nil && !keepData {
		if err := leaveFirst(ctx, c, force, out); err != nil {
			return true, err
		}
	}
	// The order matters: processes would make links and mounts again, mounts and loop devices keep files of the data
	// directory in use, and the kernel removes only cgroups without processes.
	p := steps.NewPrinter(out)
	all := []struct {
		name string
		run  func() error
	}{
		{"Stop the processes", func() error { return teardown.Stop(ctx, c.Layout(), c.Mark()) }},
		{"Remove the node network", func() error { return network.Remove(ctx, c) }},
		{"Remove the mounts", func() error { return host.UnmountBelow(c.DataDir) }},
		{"Free the loop devices", func() error {
			if !ours { // an existing directory belongs to somebody else
				return nil
			}
			return host.FreeLoopDevices(c.DataDir)
		}},
		{"Remove the cgroups", func() error { return teardown.RemoveCgroups(ctx, c.Mark(), "") }},
		{"Remove the kubeconfig context", func() error {
			err := kubeconfig.Remove(ctx, c)
			if unreadable := (*kubeconfig.UnreadableError)(nil); errors.As(err, &unreadable) {
				fmt.Fprintf(out, "  (%v: a context of the cluster in it stays)\n", err)
				return nil
			}
			return err
		}},
	}
	err = nil
	for i, step := range all {
		err = errors.Join(err, p.Run(step.name, step.run))
		if i == 0 && err != nil && ctx.Err() != nil {
			return true, err
		}
	}
	switch {
	case !ours:
		return true, err
	// The run directory goes in any case: the sockets in it belong to this life.
	case err != nil || keepData:
		return true, errors.Join(err, host.IgnoreMissing(os.RemoveAll(c.Layout().Run())))
	}
	return true, p.Run("Remove the data directory", func() error { return datadir.Remove(dataDir) })
}

// Stop ends the cluster in dataDir and removes everything that it has on the machine, except its data and its
// kubeconfig context. It cleans up in one step, as a start does before it begins, so it also works after a supervisor
// was killed.
func Stop(ctx context.Context, dataDir string, out io.Writer) error {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return err
	}
	lock, err := machine.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	p := steps.NewPrinter(out)
	return p.Run("Stop the processes", func() error {
		err := start.CleanUp(ctx, c)
		if err != nil && ctx.Err() != nil { // what still runs needs its sockets and its lock
			return err
		}
		return errors.Join(err, host.IgnoreMissing(os.RemoveAll(c.Layout().Run())))
	})
}
