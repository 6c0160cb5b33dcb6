package cluster

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/plan/plantest"
	"bonsai/pkg/cluster/snapshot"
)

// TestSnapshot: a snapshot has what makes the cluster, and a restoration puts exactly that in place: what was written
// later is gone, what was removed is back. What containerd never writes again is shared, everything else is a copy.
func TestSnapshot(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	if err := datadir.Save(c); err != nil {
		t.Fatal(err)
	}
	const lib = "nodes/n1/lib/containerd/"
	state := map[string]string{
		"etcd/member/wal": "1", "pki/ca.crt": "2", "kubeconfig/admin.conf": "3",
		"nodes/n1/lib/local-path/claim/file": "4", "nodes/n1/etc/node.json": "5",
		lib + "io.containerd.content.v1.content/blobs/sha256/x":               "6",
		lib + "io.containerd.content.v1.content/ingest/y":                     "7",
		lib + "io.containerd.snapshotter.v1.overlayfs/snapshots/1/fs/bin/sh":  "8",
		lib + "io.containerd.snapshotter.v1.overlayfs/metadata.db":            "9",
		lib + "io.containerd.metadata.v1.bolt/meta.db":                        "10",
		"nodes/n2/lib/containerd/io.containerd.snapshotter.v1.native/other.x": "11",
	}
	write := func(path, content string) {
		t.Helper()
		if err := host.WriteFile(c.Layout().At(path), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	for path, content := range state {
		write(path, content)
	}
	write("logs/etcd.log", "not this")
	if err := os.Symlink("target", c.Layout().At("nodes/n1/lib/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.Layout().At("nodes/n1/lib/local-path"), os.ModeSticky|0o777); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Copy(t.Context(), c.DataDir, c.Layout().Snapshot("clean")); err != nil {
		t.Fatal(err)
	}
	inode := func(path string) uint64 {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Ino
	}
	for path := range state {
		shared := inode(c.Layout().At(path)) == inode(c.Layout().At("snapshots/clean", path))
		if want := strings.Contains(path, "/blobs/") || strings.Contains(path, "/snapshots/"); shared != want {
			t.Errorf("%s is shared: %t", path, shared)
		}
	}
	if _, err := os.Stat(c.Layout().At("snapshots/clean/logs")); !os.IsNotExist(err) {
		t.Errorf("the logs are saved, too: %v", err)
	}
	for path := range state {
		if !strings.Contains(path, "/blobs/") && !strings.Contains(path, "/snapshots/") {
			write(path, "changed")
		}
	}
	write("etcd/member/new", "later")
	if err := os.RemoveAll(c.Layout().At("pki")); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Restore(t.Context(), c.Layout().Snapshot("clean"), c.DataDir); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Finish(c.DataDir); err != nil {
		t.Fatal(err)
	}
	for path, want := range state {
		if got, err := os.ReadFile(c.Layout().At(path)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if _, err := os.Stat(c.Layout().At("etcd/member/new")); !os.IsNotExist(err) {
		t.Errorf("what was written later is there: %v", err)
	}
	if target, err := os.Readlink(c.Layout().At("nodes/n1/lib/link")); err != nil || target != "target" {
		t.Errorf("%s, %v", target, err)
	}
	if info, err := os.Stat(c.Layout().At("nodes/n1/lib/local-path")); err != nil ||
		info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if log, err := os.ReadFile(c.Layout().At("logs/etcd.log")); err != nil || string(log) != "not this" {
		t.Errorf("the log: %q, %v", log, err)
	}
	var out strings.Builder
	if err := PrintSnapshots(c.DataDir, &out); err != nil || !strings.Contains(out.String(), "clean") {
		t.Errorf("%s, %v", &out, err)
	}
}

// TestRestorationBrokenOff: a restoration that was killed while it put things in place is finished by the next start,
// at whatever part it was; what was not yet whole is nobody's state.
func TestRestorationBrokenOff(t *testing.T) {
	t.Parallel()
	for done := range len(snapshot.Parts) + 1 {
		c := plantest.Config(t)
		content := func(at string) string {
			t.Helper()
			var found []string
			for _, part := range snapshot.Parts {
				err := filepath.WalkDir(filepath.Join(at, part), func(path string, d os.DirEntry, err error) error {
					if err != nil || d.IsDir() {
						return host.IgnoreMissing(err)
					}
					data, err := os.ReadFile(path)
					found = append(found, strings.TrimPrefix(path, at)+" "+string(data))
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			return strings.Join(found, "\n")
		}
		write := func(content string, paths ...string) {
			t.Helper()
			for _, path := range paths {
				if err := host.WriteFile(c.Layout().At(path), []byte(content)); err != nil {
					t.Fatal(err)
				}
			}
		}
		// The snapshot is of a cluster that had no nodes yet.
		write("then", "snapshots/clean/cluster.json", "snapshots/clean/pki/ca.crt",
			"snapshots/clean/kubeconfig/admin.conf", "snapshots/clean/etcd/wal")
		write("now", "cluster.json", "pki/ca.crt", "pki/other", "kubeconfig/admin.conf", "etcd/wal", "etcd/other",
			"nodes/n1/x")
		now, then := content(c.DataDir), content(c.Layout().Snapshot("clean"))
		write("half", "restoring/cluster.json", "restoring/etcd/half") // of an earlier one
		if err := snapshot.Finish(c.DataDir); err != nil || content(c.DataDir) != now {
			t.Fatalf("what was not whole was put in place: %v\n%s", err, content(c.DataDir))
		}
		if err := snapshot.Restore(t.Context(), c.Layout().Snapshot("clean"), c.DataDir); err != nil {
			t.Fatal(err)
		}
		for i, part := range snapshot.Parts[:done] { // killed in the last of them
			if err := os.RemoveAll(c.Layout().At(part)); err != nil {
				t.Fatal(err)
			}
			if i == done-1 && part != "cluster.json" {
				break
			}
			if err := os.Rename(c.Layout().At(snapshot.Restored, part), c.Layout().At(part)); err != nil {
				t.Fatal(err)
			}
		}
		if err := snapshot.Finish(c.DataDir); err != nil || content(c.DataDir) != then {
			t.Errorf("killed after %d parts: %v\n%s\nwant\n%s", done, err, content(c.DataDir), then)
		}
		for _, name := range []string{snapshot.Restoring, snapshot.Restored} {
			if err := host.StatError(c.Layout().At(name)); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", name, err)
			}
		}
	}
}

// TestSavesThatWereKilled: what they left is not kept for good, and a snapshot stays.
func TestSavesThatWereKilled(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	for _, path := range []string{"clean/cluster.json", "killed.partial/etcd/wal"} {
		if err := host.WriteFile(filepath.Join(c.Layout().Snapshots(), path), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := snapshot.RemovePartial(c.Layout().Snapshots()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(c.Layout().Snapshots()); err != nil || len(left) != 1 || left[0].Name() != "clean" {
		t.Errorf("%v, %v", left, err)
	}
}

// TestSnapshotNames: a name leads to nothing but a snapshot.
func TestSnapshotNames(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	if err := datadir.Save(c); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "../pki", "a/b", "none"} {
		if err := snapshot.Remove(c.Layout(),
			name); err == nil || !strings.Contains(err.Error(), "no snapshot called") {
			t.Errorf("remove %q: %v", name, err)
		}
		if _, err := RestoreSnapshot(t.Context(), c.DataDir, name, false, io.Discard); err == nil ||
			!strings.Contains(err.Error(), "no snapshot called") {
			t.Errorf("restore %q: %v", name, err)
		}
	}
	if err := SaveSnapshot(t.Context(), c.DataDir, "../x", false, io.Discard); err == nil {
		t.Error("saved as ../x")
	}
	if err := os.MkdirAll(filepath.Join(c.Layout().Snapshot("there")), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := SaveSnapshot(t.Context(), c.DataDir, "there", false, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "already") {
		t.Errorf("saved twice: %v", err)
	}
}

// TestSnapshotElsewhere: a cluster whose objects are also in an etcd of the user's is neither saved nor restored.
func TestSnapshotElsewhere(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	if err := host.WriteFile(filepath.Join(c.Layout().Snapshot("before"), "cluster.json"), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"etcd-servers-overrides", "etcd-servers"} {
		c.ComponentFlags = map[string]map[string]string{"kube-apiserver": {flag: "/events#http://etcd"}}
		if err := datadir.Save(c); err != nil {
			t.Fatal(err)
		}
		err := SaveSnapshot(t.Context(), c.DataDir, "now", false, io.Discard)
		_, restored := RestoreSnapshot(t.Context(), c.DataDir, "before", false, io.Discard)
		for _, err := range []error{err, restored} {
			if err == nil || !strings.Contains(err.Error(), "kube-apiserver --"+flag+"=/events#http://etcd: objects are in another etcd") {
				t.Errorf("%s: %v", flag, err)
			}
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(c.Layout().Snapshot("now"))); err != nil || len(entries) != 1 {
		t.Errorf("there are %v, %v", entries, err)
	}
}
