package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/pause"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/snapshot"
	"bonsai/pkg/cluster/steps"
	"bonsai/pkg/cluster/teardown"
)

// SaveSnapshot saves the cluster in dataDir, which is frozen meanwhile if it runs: what is saved is what a failure of
// the power would leave, and etcd and containerd are made to start from that.
func SaveSnapshot(ctx context.Context, dataDir, name string, out io.Writer) (err error) {
	c, err := datadir.LoadControlPlane(dataDir)
	if err != nil {
		return err
	}
	if err := plan.CheckName(name); err != nil {
		return fmt.Errorf("the snapshot's name: %w", err)
	}
	to := c.Layout().Snapshot(name)
	if host.StatError(to) == nil {
		return fmt.Errorf("there is a snapshot called %s already (bonsai snapshot rm %[1]s)", name)
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
	if !paused(c) && running(ctx, c) {
		if err := pause.Freeze(ctx, c.Mark()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, resume(context.WithoutCancel(ctx), c)) }()
	}
	if err := errors.Join(os.MkdirAll(c.Layout().Snapshots(), 0o700),
		snapshot.RemovePartial(c.Layout().Snapshots())); err != nil {
		return err
	}
	partial := to + snapshot.PartialSuffix
	err = snapshot.Copy(ctx, dataDir, partial)
	if err == nil {
		err = os.Rename(partial, to)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("save the snapshot %s: %w", name, err), os.RemoveAll(partial))
	}
	return nil
}

// RestoreSnapshot ends the cluster in dataDir, if it runs, as a failure of the power would, and puts in place what a
// snapshot has. wasUp reports whether it ran. Until the last step, the cluster's own state is there; a last step that
// is broken off is finished before anything else is done with the cluster.
func RestoreSnapshot(ctx context.Context, dataDir, name string, out io.Writer) (wasUp bool, err error) {
	c, err := datadir.LoadControlPlane(dataDir)
	if err != nil {
		return false, err
	}
	from := c.Layout().Snapshot(name)
	if plan.CheckName(name) != nil || host.StatError(from) != nil {
		return false, fmt.Errorf("there is no snapshot called %s (bonsai snapshot list)", name)
	}
	lock, err := machine.Lock(ctx) // a start that goes on meanwhile would run on half of either state
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
	p := steps.NewPrinter(out)
	wasUp = paused(c) || running(ctx, c)
	for _, step := range []steps.Step{
		steps.New("Stop the processes", func(ctx context.Context) error {
			if paused(c) {
				if err := cgroup.FreezerOf(c.Mark()).Set(ctx, false); err != nil {
					return err
				}
			}
			return errors.Join(teardown.Kill(ctx, c.Mark()), endEarlierLife(ctx, c))
		}),
		steps.New("Copy the snapshot", func(ctx context.Context) error { return snapshot.Restore(ctx, from, dataDir) }),
		steps.New("Put it in place", func(context.Context) error { return snapshot.Finish(dataDir) }),
	} {
		if err := p.Run(step.Name, func() error { return step.Run(ctx) }); err != nil {
			return wasUp, fmt.Errorf("%s: %w", strings.ToLower(step.Name), err)
		}
	}
	return wasUp, nil
}

// PrintSnapshots prints the snapshots of the cluster in dataDir, one on a line.
func PrintSnapshots(dataDir string, out io.Writer) error {
	c, err := datadir.LoadExisting(dataDir)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(c.Layout().Snapshots())
	if host.IgnoreMissing(err) != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tSAVED\tNODES")
	for _, e := range entries {
		if plan.CheckName(e.Name()) != nil {
			continue // one that was not finished
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		of, err := datadir.Load(c.Layout().Snapshot(e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%s\t%d\n", e.Name(), info.ModTime().Format(time.DateTime), len(of.Nodes))
	}
	return w.Flush()
}

// RemoveSnapshot removes a snapshot of the cluster in dataDir.
func RemoveSnapshot(dataDir, name string) error {
	path := plan.Layout(dataDir).Snapshot(name)
	if plan.CheckName(name) != nil || host.StatError(path) != nil {
		return fmt.Errorf("there is no snapshot called %s (bonsai snapshot list)", name)
	}
	return os.RemoveAll(path)
}
