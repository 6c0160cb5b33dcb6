package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/encryption"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/pause"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/componentflags"
	"bonsai/pkg/cluster/snapshot"
	"bonsai/pkg/cluster/start"
	"bonsai/pkg/cluster/steps"
	"bonsai/pkg/cluster/teardown"
)

// FinishRestore finishes a restore in dataDir that was broken off. Commands that start a cluster call it before they
// read the configuration, which is another one after it. It does nothing else, and then does not wait for the lock.
func FinishRestore(ctx context.Context, dataDir string) error {
	if !snapshot.IsUnfinished(dataDir) {
		return nil
	}
	lock, err := machine.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	return snapshot.Finish(dataDir)
}

// checkFinished returns an error if a restore was broken off since the caller read the configuration (FinishRestore).
// The caller holds the machine's lock.
func checkFinished(dataDir string) error {
	if snapshot.IsUnfinished(dataDir) {
		return fmt.Errorf("a restore of the cluster in %s was broken off meanwhile: run the command again", dataDir)
	}
	return nil
}

// SaveSnapshot saves the cluster in dataDir. If the cluster runs, it is frozen meanwhile: the snapshot has the state
// that a power failure would leave, and etcd and containerd can start from that. The keys of its Secrets are in it only
// if withKeys.
func SaveSnapshot(ctx context.Context, dataDir, name string, withKeys bool, out io.Writer) (err error) {
	if _, err := maySave(dataDir, name); err != nil { // before it waits
		return err
	}
	lock, err := machine.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	began := time.Now()
	defer func() {
		if err == nil {
			fmt.Fprintf(out, "Saved %s in %.2f s.\n", name, time.Since(began).Seconds())
		}
	}()
	if err := snapshot.Finish(dataDir); err != nil {
		return err
	}
	c, err := maySave(dataDir, name) // another command may have given the cluster keys since, or saved that snapshot
	if err != nil {
		return err
	}
	goOn, err := freeze(ctx, c)
	if err != nil {
		return err
	}
	// WithoutCancel: a cluster that was frozen for the snapshot must go on, however the command ends.
	defer func() { err = errors.Join(err, goOn(context.WithoutCancel(ctx))) }()
	keys, err := encryption.Record(c, withKeys)
	if err != nil {
		return err
	}
	return snapshot.Save(ctx, c.Layout(), name, keys)
}

// freeze freezes the processes of the cluster, unless it is paused. goOn thaws what freeze froze. The cgroups say
// whether there are processes: a supervisor that is overloaded, stops, or was killed does not answer, and what is left
// of its cluster writes all the same. The leases are renewed only if it answers.
func freeze(ctx context.Context, c plan.Config) (goOn func(context.Context) error, err error) {
	groups, err := cgroup.Find(c.Mark())
	if err != nil {
		return nil, err
	}
	processes, err := groups.Processes("")
	if err != nil {
		return nil, err
	}
	if paused(c) || len(processes) == 0 {
		return func(context.Context) error { return nil }, nil
	}
	answers := running(ctx, c)
	if err := pause.Freeze(ctx, c.Mark()); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if answers {
			return resume(ctx, c)
		}
		return pause.Thaw(ctx, c.Mark(), c.Bin("kube-controller-manager"), func(context.Context) error { return nil })
	}, nil
}

// maySave returns the cluster in dataDir, or says why it cannot be saved under that name.
func maySave(dataDir, name string) (plan.Config, error) {
	c, err := datadir.LoadFirst(dataDir)
	if err != nil {
		return c, err
	}
	if err := plan.CheckName(name); err != nil {
		return c, fmt.Errorf("the snapshot's name: %w", err)
	}
	if err := checkStores(c, "a snapshot would not have them"); err != nil {
		return c, err
	}
	if host.StatError(c.Layout().Snapshot(name)) == nil {
		return c, fmt.Errorf("there is a snapshot called %s already (bonsai snapshot rm %[1]s)", name)
	}
	return c, nil
}

// RestoreSnapshot ends the cluster in dataDir, if it runs, as a power failure would, and puts a snapshot in its place.
// wasUp reports whether it ran. Until the last step the cluster keeps its own state. If the last step is broken off,
// the next command that changes the cluster finishes it first. The cluster stays stopped: the command starts it again
// if wasUp (snapshot restore).
func RestoreSnapshot(ctx context.Context, home machine.Home, dataDir, name string, alone bool,
	out io.Writer) (wasUp bool, err error) {
	c, _, err := mayRestore(home, dataDir, name, alone) // before it waits
	if err != nil {
		return false, err
	}
	lock, err := machine.Lock(ctx) // a start at the same time would run on half of either state
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if err := checkNotServed(c, fmt.Sprintf("bonsai --data-dir %s snapshot restore %s", dataDir, name)); err != nil {
		return false, err
	}
	if err := snapshot.Finish(dataDir); err != nil {
		return false, err
	}
	// Other commands may have changed the cluster and its snapshots since.
	c, from, err := mayRestore(home, dataDir, name, alone)
	if err != nil {
		return false, err
	}
	p := steps.NewPrinter(out)
	wasUp = paused(c) || running(ctx, c) // asked before the first step ends it
	for _, step := range []steps.Step{
		steps.New("Stop the processes", func(ctx context.Context) error {
			if paused(c) {
				if err := cgroup.FreezerOf(c.Mark()).Set(ctx, false); err != nil {
					return err
				}
			}
			return errors.Join(teardown.Kill(ctx, c.Mark()), start.CleanUp(ctx, c))
		}),
		steps.New("Copy the snapshot", func(ctx context.Context) error {
			// The keys come first: once the copy is whole, any command may put it in place.
			if err := encryption.Admit(c.Layout(), name); err != nil {
				return err
			}
			return snapshot.Restore(ctx, from, dataDir)
		}),
		steps.New("Put it in place", func(context.Context) error { return snapshot.Finish(dataDir) }),
	} {
		if err := p.Run(step.Name, func() error { return step.Run(ctx) }); err != nil {
			return wasUp, fmt.Errorf("%s: %w", strings.ToLower(step.Name), err)
		}
	}
	return wasUp, nil
}

// mayRestore returns the cluster in dataDir and the directory of its snapshot, or says why the snapshot cannot be
// restored. alone reports whether this machine is to forget the control planes of others.
func mayRestore(home machine.Home, dataDir, name string, alone bool) (c plan.Config, from string, err error) {
	c, err = datadir.LoadFirst(dataDir)
	if err != nil {
		return c, "", err
	}
	from, err = snapshot.Find(c.Layout(), name)
	if err != nil {
		return c, "", err
	}
	if err := checkStores(c, "a snapshot would not bring them back"); err != nil {
		return c, "", err
	}
	if err := snapshot.CheckWhole(from); err != nil {
		return c, "", err
	}
	if err := encryption.Missing(c.Layout(), name); err != nil {
		return c, "", err
	}
	// The snapshot has one member of etcd's, as it was: the others would refuse it, or follow it.
	if len(c.Peers) > 1 && !alone {
		return c, "", fmt.Errorf("the cluster has control planes on %d machines, and a snapshot is one machine's: run bonsai down on the others first, or restore it as a cluster of its own (--force-new-cluster)",
			len(c.Peers))
	}
	if len(c.Peers) < 2 && alone { // ForceNewCluster would refuse when the cluster's state is gone
		return c, "", errAlone
	}
	return c, from, checkFree(home, dataDir, name)
}

// checkFree returns an error if other clusters of this machine have what the cluster of a snapshot would need, such as
// its name: the snapshot is of one of them, and could not start here.
func checkFree(home machine.Home, dataDir, name string) error {
	saved, err := datadir.Load(plan.Layout(dataDir).Snapshot(name))
	if err != nil {
		return err
	}
	saved.DataDir = dataDir
	m, err := start.Survey(saved, home)
	if err != nil {
		return err
	}
	if claims := m.Claimed(saved); len(claims) > 0 {
		return fmt.Errorf("the cluster of the snapshot %s could not start here beside the clusters of this machine, and nothing was changed. Restore it on another machine, or where it was saved: %w",
			name, plan.DescribeClaims(claims))
	}
	return nil
}

// RemoveSnapshot removes a snapshot of the cluster in dataDir. It waits until no other command saves or restores one.
func RemoveSnapshot(ctx context.Context, dataDir, name string) error {
	lock, err := machine.Lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	return snapshot.Remove(plan.Layout(dataDir), name)
}

// checkStores returns an error if objects of the cluster are elsewhere than in its etcd, where nothing saves them. what
// says what that means.
func checkStores(c plan.Config, what string) error {
	flag, given := componentflags.OwnEtcd(c.ComponentFlags)
	if !given {
		return nil
	}
	return fmt.Errorf("kube-apiserver --%s=%s: objects are in another etcd than the cluster's, and %s: save and restore these etcds and this one yourself, with the cluster stopped (etcdutl snapshot), or take the flag away first",
		flag, c.ComponentFlags["kube-apiserver"][flag], what)
}

// PrintSnapshots prints the snapshots of the cluster in dataDir, one on a line.
func PrintSnapshots(dataDir string, out io.Writer) error {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return err
	}
	return snapshot.Print(c.Layout(), out)
}
