package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/plan"
)

// saved are the parts of the data directory that a snapshot has: all but logs, what runs, and snapshots.
var saved = [...]string{"cluster.json", "pki", "kubeconfig", "etcd", "nodes"}

// A restoration copies a snapshot to the directory restoring below the data directory, and renames that to restored when all of it is there.
// From then on the cluster's state is what restored has and, of parts that it has not any more, what is in place (finishRestoration).
const (
	restoring = "restoring"
	restored  = "restored"
)

// SaveSnapshot saves the cluster in dataDir, which is frozen meanwhile if it runs: what is saved is what a failure of the power would
// leave, and etcd and containerd are made to start from that.
func SaveSnapshot(ctx context.Context, dataDir, name string, out io.Writer) (err error) {
	c, err := loadControlPlane(dataDir)
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
	lock, err := lockMachine(ctx, machineLock)
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
	if err := finishRestoration(dataDir); err != nil {
		return err
	}
	if !paused(c) && running(ctx, c) {
		if err := pause(ctx, c); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, resume(context.WithoutCancel(ctx), c)) }()
	}
	if err := errors.Join(os.MkdirAll(c.Layout().Snapshots(), 0o700), removePartial(c.Layout().Snapshots())); err != nil {
		return err
	}
	partial := to + partialSuffix
	err = copySaved(ctx, dataDir, partial)
	if err == nil {
		err = os.Rename(partial, to)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("save the snapshot %s: %w", name, err), os.RemoveAll(partial))
	}
	return nil
}

// partialSuffix is that of a snapshot that is being saved: no name of one has a dot.
const partialSuffix = ".partial"

// removePartial removes what saves left that were killed. None goes on: whoever saves holds the machine's lock.
func removePartial(snapshots string) error {
	entries, err := os.ReadDir(snapshots)
	errs := []error{host.IgnoreMissing(err)}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), partialSuffix) {
			errs = append(errs, os.RemoveAll(filepath.Join(snapshots, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// RestoreSnapshot ends the cluster in dataDir, if it runs, as a failure of the power would, and puts in place what a snapshot has. wasUp
// tells whether it ran. Until the last step, the cluster's own state is there; a last step that is broken off is finished before anything
// else is done with the cluster.
func RestoreSnapshot(ctx context.Context, dataDir, name string, out io.Writer) (wasUp bool, err error) {
	c, err := loadControlPlane(dataDir)
	if err != nil {
		return false, err
	}
	from := c.Layout().Snapshot(name)
	if plan.CheckName(name) != nil || host.StatError(from) != nil {
		return false, fmt.Errorf("there is no snapshot called %s (bonsai snapshot list)", name)
	}
	lock, err := lockMachine(ctx, machineLock) // a start that goes on meanwhile would run on half of either state
	if err != nil {
		return false, err
	}
	defer lock.Close()
	if err := checkNotServed(c, fmt.Sprintf("bonsai --data-dir %s snapshot restore %s", dataDir, name)); err != nil {
		return false, err
	}
	if err := finishRestoration(dataDir); err != nil {
		return false, err
	}
	p := progress{out: out, began: time.Now()}
	wasUp = paused(c) || running(ctx, c)
	for _, step := range []upStep{
		{"Stop the processes", func(ctx context.Context) error {
			if paused(c) {
				if err := cgroup.FreezerOf(c.Mark()).Set(ctx, false); err != nil {
					return err
				}
			}
			return errors.Join(killProcesses(ctx, c), endEarlierLife(ctx, c))
		}},
		{"Copy the snapshot", func(ctx context.Context) error { return copyWhole(ctx, from, dataDir) }},
		{"Put it in place", func(context.Context) error { return finishRestoration(dataDir) }},
	} {
		if err := p.step(step.name, func() error { return step.run(ctx) }); err != nil {
			return wasUp, fmt.Errorf("%s: %w", strings.ToLower(step.name), err)
		}
	}
	return wasUp, nil
}

// copyWhole makes restored below dir, whole or not at all, with all the parts that a snapshot may have.
func copyWhole(ctx context.Context, from, dir string) error {
	next := filepath.Join(dir, restoring)
	if err := errors.Join(os.RemoveAll(next), copySaved(ctx, from, next)); err != nil {
		return err
	}
	for _, part := range saved[1:] { // directories, which a cluster that was never started lacks
		if err := os.MkdirAll(filepath.Join(next, part), 0o700); err != nil {
			return err
		}
	}
	return os.Rename(next, filepath.Join(dir, restored))
}

// finishRestoration puts in place what is in restored below dir, if there is one. It may be broken off at any moment and begun again.
func finishRestoration(dir string) error {
	next := filepath.Join(dir, restored)
	if err := host.StatError(next); err != nil {
		return host.IgnoreMissing(err)
	}
	for _, part := range saved {
		own, other := filepath.Join(dir, part), filepath.Join(next, part)
		err := os.Rename(other, own)
		if errors.Is(err, os.ErrExist) { // a directory
			err = errors.Join(os.RemoveAll(own), os.Rename(other, own))
		}
		if host.IgnoreMissing(err) != nil { // what is missing is in its place
			return fmt.Errorf("finish the restoration of a snapshot: %w", err)
		}
	}
	return os.RemoveAll(next)
}

// PrintSnapshots prints the snapshots of the cluster in dataDir, one on a line.
func PrintSnapshots(dataDir string, out io.Writer) error {
	c, err := LoadExisting(dataDir)
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
		of, err := Load(c.Layout().Snapshot(e.Name()))
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

// linked are directories whose files are never written again once a cluster has been started anew: containerd names blobs after their
// content, and writes only in the layers of containers that it makes later. So they are shared and not copied.
var linked = regexp.MustCompile(`/lib/containerd/(io\.containerd\.content\.v1\.content/blobs|io\.containerd\.snapshotter\.v1\.[^/]+/snapshots)$`)

// opened are the directories on the way to those.
var opened = regexp.MustCompile(`^nodes(/[^/]+(/lib(/containerd(/io\.containerd\.(content|snapshotter)\.v1\.[^/]+)?)?)?)?$`)

// copySaved makes the directory to with the saved parts of from: owners, modes, extended attributes, holes and all.
func copySaved(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, part := range saved {
		if err := host.StatError(filepath.Join(from, part)); errors.Is(err, os.ErrNotExist) {
			continue // a cluster that was never started
		}
		if err := copyPart(ctx, from, to, part); err != nil {
			return err
		}
	}
	return nil
}

func copyPart(ctx context.Context, from, to, part string) error {
	source, target := filepath.Join(from, part), filepath.Join(to, part)
	how := []string{"-a", "--reflink=auto"}
	if linked.MatchString(part) {
		how = []string{"-a", "--link"}
	}
	if !opened.MatchString(part) {
		return host.Run(ctx, "", "cp", append(how, "--no-target-directory", "--", source, target)...)
	}
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if err := os.Mkdir(target, info.Mode().Perm()); err != nil { // these are root's, and have no attributes
		return err
	}
	entries, err := os.ReadDir(source)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyPart(ctx, from, to, filepath.Join(part, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
