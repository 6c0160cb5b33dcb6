package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/kubeconfig"
	"bonsai/pkg/cluster/network"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/snapshot"
)

// Down stops the cluster in dataDir and removes all it made: processes, namespaces, links, routes, packet rules, loop
// devices, cgroups, the context in the user's kubeconfig, and, unless keepData, the data directory. It goes by the
// cluster's mark, so that it does as well after a supervisor or nodes that were killed, and with a data directory that
// cannot be read any more. found is false if there was no cluster.
func Down(ctx context.Context, dataDir string, keepData bool, out io.Writer) (found bool, err error) {
	lock, err := lockMachine(ctx, machineLock) // a start that goes on makes what is removed here
	if err != nil {
		return false, err
	}
	defer lock.Close()
	c, err := Load(dataDir)
	missing := errors.Is(err, os.ErrNotExist)
	if err != nil {
		c = plan.Default(dataDir, "")
	}
	ours := !missing || isLeftData(dataDir)
	if !ours && !leftSomething(c) {
		_ = syscall.Rmdir(dataDir) // a start that was killed at its first step leaves it empty
		return false, nil
	}
	p := progress{out: out, began: time.Now()}
	steps := []struct {
		name string
		run  func() error
	}{
		{"Stop the processes", func() error { return stop(ctx, c) }},
		{"Remove the node network", func() error { return network.Remove(ctx, c) }},
		{"Remove the mounts", func() error { return host.UnmountBelow(c.DataDir) }},
		{"Free the loop devices", func() error {
			if !ours { // what is in the directory, if it is there, is not ours
				return nil
			}
			return host.FreeLoopDevices(c.DataDir)
		}},
		{"Remove the cgroups", func() error { return removeCgroups(ctx, c) }},
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
	for _, step := range steps {
		err = errors.Join(err, p.step(step.name, step.run))
	}
	switch {
	case !ours:
		return true, err
	case err != nil || keepData:
		return true, errors.Join(err, host.IgnoreMissing(os.RemoveAll(c.Layout().Run())))
	}
	return true, p.step("Remove the data directory", func() error { return removeData(dataDir) })
}

// Stop ends the cluster in dataDir and removes what it has on the machine but its data and its kubeconfig context.
func Stop(ctx context.Context, dataDir string, out io.Writer) error {
	c, err := LoadExisting(dataDir)
	if err != nil {
		return err
	}
	lock, err := lockMachine(ctx, machineLock)
	if err != nil {
		return err
	}
	defer lock.Close()
	p := progress{out: out, began: time.Now()}
	return p.step("Stop the processes", func() error {
		return errors.Join(endEarlierLife(ctx, c), host.IgnoreMissing(os.RemoveAll(c.Layout().Run())))
	})
}

// isLeftData reports whether dir is what is left of a data directory without a configuration: it has some of what a
// cluster writes, for root alone, and nothing else.
func isLeftData(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return false
	}
	l := plan.Layout(dir)
	var known []string
	for _, path := range []string{l.Config(), l.Config() + host.NewSuffix, l.CloudConfig(), l.PKI(""),
		filepath.Dir(l.Kubeconfig("")), l.At("etcd"), l.At("nodes"), filepath.Dir(l.Log("")), l.Run(), l.Snapshots(),
		l.At(snapshot.Restoring), l.At(snapshot.Restored)} {
		known = append(known, filepath.Base(path))
	}
	telling := false
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !slices.Contains(known, e.Name()) ||
			info.IsDir() && info.Mode().Perm() != 0o700 && e.Name() != "nodes" {
			return false
		}
		telling = telling || slices.Contains(
			[]string{"pki", "etcd", "nodes", filepath.Base(l.Config() + host.NewSuffix)}, e.Name())
	}
	return telling
}

// leftSomething reports whether anything on the host carries the cluster's mark.
func leftSomething(c plan.Config) bool {
	if _, err := netlink.LinkByName(c.Mark()); err == nil {
		return true
	}
	if _, err := os.Stat("/run/netns/" + c.Mark()); err == nil {
		return true
	}
	groups, err := cgroup.Find(c.Mark())
	return err == nil && groups.Exist()
}

// removeData removes the data directory. One that is a mount point, such as a volume, is emptied: it was not made by
// us.
func removeData(dir string) error {
	if mounts, err := host.MountsBelow(dir); err != nil || len(mounts) > 0 {
		return errors.Join(err, fmt.Errorf("still mounted: %v", mounts))
	}
	err := os.RemoveAll(dir)
	if errors.Is(err, syscall.EBUSY) && host.IsMountPoint(dir) {
		return nil
	}
	return err
}
