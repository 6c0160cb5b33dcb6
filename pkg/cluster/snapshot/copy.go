package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"bonsai/pkg/cluster/host"
	"bonsai/pkg/durable"
)

// Parts are the parts of the data directory that a snapshot has: all but logs, what runs, snapshots, and the keys of
// Secrets, because snapshots are shared.
var Parts = [...]string{"cluster.json", "pki", "kubeconfig", "etcd", "nodes"}

// needed are the parts that every start makes. Without one of them a directory holds no cluster's state: a start would
// make the part again, for an empty cluster.
var needed = [...]string{"cluster.json", "pki", "etcd"}

// CheckWhole returns an error if the snapshot in the directory from is gone, or lacks what makes a cluster: an
// interrupted copy or removal by hand leaves such a directory.
func CheckWhole(from string) error {
	for _, part := range needed {
		err := host.StatError(filepath.Join(from, part))
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("the snapshot in %s is not whole, and nothing was changed: %s is missing (copy the snapshot again, or restore another one)",
				from, part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A restoration copies a snapshot to the directory Restoring below the data directory, and renames that to Restored
// when all of it is there. From then on the cluster's state is what Restored has and, for parts that it no longer has,
// what is in place (Finish).
const (
	Restoring = "restoring"
	Restored  = "restored"
)

// PartialSuffix is the suffix of a snapshot that is being saved or removed. No snapshot's name has a dot.
const PartialSuffix = ".partial"

// RemovePartial removes what killed saves and removals left in the directory of snapshots. The caller holds the
// machine's lock, so no other save or removal is going on.
func RemovePartial(snapshots string) error {
	entries, err := os.ReadDir(snapshots)
	errs := []error{host.IgnoreMissing(err)}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), PartialSuffix) {
			errs = append(errs, os.RemoveAll(filepath.Join(snapshots, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// Restore makes Restored below dir from a snapshot, whole or not at all, with all parts that a snapshot may have. The
// caller holds the machine's lock, so no command removes the snapshot meanwhile.
func Restore(ctx context.Context, from, dir string) error {
	if err := CheckWhole(from); err != nil { // Finish would put empty directories in the place of what is missing
		return err
	}
	next := filepath.Join(dir, Restoring)
	if err := errors.Join(os.RemoveAll(next), Copy(ctx, from, next)); err != nil {
		return err
	}
	for _, part := range Parts[1:] { // directories: a snapshot may lack nodes
		if err := os.MkdirAll(filepath.Join(next, part), 0o700); err != nil {
			return err
		}
	}
	return durable.Rename(next, filepath.Join(dir, Restored))
}

// IsUnfinished reports whether a restoration was broken off before all of it was in place.
func IsUnfinished(dir string) bool { return host.StatError(filepath.Join(dir, Restored)) == nil }

// Finish puts in place what is in Restored below dir, if there is one. It may be broken off at any moment and begun
// again. It deletes nothing in Restored that no restoration makes: those are files of others, and the error says so.
func Finish(dir string) error {
	next := filepath.Join(dir, Restored)
	if err := host.StatError(next); err != nil {
		return host.IgnoreMissing(err)
	}
	for _, part := range Parts {
		own, other := filepath.Join(dir, part), filepath.Join(next, part)
		err := os.Rename(other, own)
		if errors.Is(err, os.ErrExist) { // a directory, which rename(2) does not replace unless it is empty
			err = errors.Join(os.RemoveAll(own), os.Rename(other, own))
		}
		if host.IgnoreMissing(err) != nil { // a missing part is in its place already
			return fmt.Errorf("finish the restoration of a snapshot: %w", err)
		}
	}
	if err := errors.Join(os.Remove(next), durable.SyncDir(dir)); err != nil {
		return fmt.Errorf("finish the restoration of a snapshot: %w", err)
	}
	return nil
}

// linked matches the directories whose files are never written again once a cluster has been restarted: containerd
// names blobs by their content, and writes only in the layers of containers that it makes later. A snapshot shares
// these files by hard links.
var linked = regexp.MustCompile(
	`/lib/containerd/(io\.containerd\.content\.v1\.content/blobs|io\.containerd\.snapshotter\.v1\.[^/]+/snapshots)$`)

// opened matches the directories on the way to the linked ones.
var opened = regexp.MustCompile(
	`^nodes(/[^/]+(/lib(/containerd(/io\.containerd\.(content|snapshotter)\.v1\.[^/]+)?)?)?)?$`)

// Copy makes the directory to with the saved parts of from: owners, modes, extended attributes, holes and all. The copy
// is on the disk when Copy returns: its callers rename it, and Finish removes what was there before.
func Copy(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, part := range Parts {
		if err := host.StatError(filepath.Join(from, part)); errors.Is(err, os.ErrNotExist) {
			continue // a cluster may have no nodes, and one that was never started has nothing yet
		}
		if err := copyPart(ctx, from, to, part); err != nil {
			return err
		}
	}
	return durable.Flush(to)
}

// copyPart copies one part of the data directory, or links it if its files are never written again. It opens the
// directories above such files and makes them itself.
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
