package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"text/tabwriter"
	"time"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/durable"
)

// Save saves the state in the data directory as a new snapshot, whole or not at all. It first removes what killed saves
// left. Nothing may write below the data directory meanwhile. keys says which keys its Secrets need, nil if none.
func Save(ctx context.Context, l plan.Layout, name string, keys []byte) error {
	if err := errors.Join(os.MkdirAll(l.Snapshots(), 0o700), RemovePartial(l.Snapshots())); err != nil {
		return err
	}
	to := l.Snapshot(name)
	partial := to + PartialSuffix
	err := Copy(ctx, string(l), partial)
	if err == nil && keys != nil {
		err = host.KeepFile(l.SnapshotKeys(name+PartialSuffix), keys)
	}
	if err == nil {
		err = durable.Rename(partial, to)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("save the snapshot %s: %w", name, err), os.RemoveAll(partial))
	}
	return nil
}

// Find returns the directory of a snapshot. It accepts a snapshot's name and nothing else: no path leads out of the
// directory of snapshots.
func Find(l plan.Layout, name string) (string, error) {
	path := l.Snapshot(name)
	if plan.CheckName(name) != nil || host.StatError(path) != nil {
		return "", fmt.Errorf("there is no snapshot called %s (bonsai snapshot list)", name)
	}
	return path, nil
}

// Remove removes a snapshot. The caller holds the machine's lock. The snapshot first loses its name: a removal that is
// broken off leaves nothing that could be restored, and RemovePartial removes the rest.
func Remove(l plan.Layout, name string) error {
	path, err := Find(l, name)
	if err != nil {
		return err
	}
	partial := path + PartialSuffix
	if err := errors.Join(RemovePartial(l.Snapshots()), durable.Rename(path, partial)); err != nil {
		return err
	}
	return os.RemoveAll(partial)
}

// Print prints the snapshots, one on a line. One that cannot be read does not hide the others.
func Print(l plan.Layout, out io.Writer) error {
	entries, err := os.ReadDir(l.Snapshots())
	if host.IgnoreMissing(err) != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(w, "NAME\tSAVED\tNODES")
	for _, e := range entries {
		if plan.CheckName(e.Name()) != nil {
			continue // a save that was not finished
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		saved, err := datadir.Load(l.Snapshot(e.Name()))
		if errors.Is(err, syscall.ENOTDIR) {
			continue // a file of the user's
		}
		nodes := "?"
		if err == nil {
			nodes = strconv.Itoa(len(saved.Nodes))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", e.Name(), info.ModTime().Format(time.DateTime), nodes)
	}
	return w.Flush()
}
