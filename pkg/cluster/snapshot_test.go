package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bonsai/pkg/cluster/datadir"
	"bonsai/pkg/cluster/encryption"
	"bonsai/pkg/cluster/host"
	"bonsai/pkg/cluster/host/cgroup"
	"bonsai/pkg/cluster/machine"
	"bonsai/pkg/cluster/plan"
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
		write("mine", "restored/mine") // no restoration makes such a file
		if err := snapshot.Finish(c.DataDir); err == nil || host.StatError(c.Layout().At("restored", "mine")) != nil {
			t.Errorf("a file of others was deleted: %v", err)
		}
	}
}

// TestHalfSnapshot: a snapshot that lacks what makes a cluster is not restored, and the cluster keeps its own state.
func TestHalfSnapshot(t *testing.T) {
	t.Parallel()
	all := []string{"cluster.json", "pki/ca.crt", "etcd/wal"}
	for _, missing := range append(all, "") { // "": the snapshot is gone
		c := plantest.Config(t)
		for _, path := range all {
			if err := host.WriteFile(c.Layout().At(path), []byte("own")); err != nil {
				t.Fatal(err)
			}
			if missing == "" || path == missing {
				continue
			}
			if err := host.WriteFile(c.Layout().At("snapshots/clean", path), []byte("saved")); err != nil {
				t.Fatal(err)
			}
		}
		err := snapshot.Restore(t.Context(), c.Layout().Snapshot("clean"), c.DataDir)
		part, _, _ := strings.Cut(missing, "/")
		if err == nil || !strings.Contains(err.Error(), c.Layout().Snapshot("clean")) ||
			!strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("without %q: %v", missing, err)
		}
		if err := snapshot.Finish(c.DataDir); err != nil {
			t.Error(err)
		}
		for _, path := range all {
			if got, err := os.ReadFile(c.Layout().At(path)); err != nil || string(got) != "own" {
				t.Errorf("without %q: %s is %q, %v", missing, path, got, err)
			}
		}
	}
}

// TestRemovalBrokenOff: a snapshot that is being removed has no snapshot's name, so nobody restores what is left of it,
// and the next save or removal takes the rest.
func TestRemovalBrokenOff(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	for _, path := range []string{"clean/etcd/wal", "clean.partial/etcd/wal", "other.partial/etcd/wal"} {
		if err := host.WriteFile(filepath.Join(c.Layout().Snapshots(), path), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := snapshot.Remove(c.Layout(), "clean"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(c.Layout().Snapshots()); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
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
		if _, err := RestoreSnapshot(t.Context(), machine.Home(t.TempDir()), c.DataDir, name, false,
			io.Discard); err == nil ||
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
		_, restored := RestoreSnapshot(t.Context(), machine.Home(t.TempDir()), c.DataDir, "before", false, io.Discard)
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

// TestSnapshotRemovedMeanwhile: a restoration that waits for the machine's lock looks for its snapshot again.
func TestSnapshotRemovedMeanwhile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	emptyMachine(t)
	c := plantest.Config(t)
	saveStarted(t, c)
	if err := snapshot.Copy(t.Context(), c.DataDir, c.Layout().Snapshot("clean")); err != nil {
		t.Fatal(err)
	}
	err := whileLocked(t, func() error {
		runtime.LockOSThread()
		_ = unix.Unshare(unix.CLONE_NEWNET)
		_, err := RestoreSnapshot(t.Context(), machine.Home(t.TempDir()), c.DataDir, "clean", false, io.Discard)
		return err
	}, func() error { return snapshot.Remove(c.Layout(), "clean") })
	if err == nil || !strings.Contains(err.Error(), "no snapshot called clean") {
		t.Errorf("restored: %v", err)
	}
	for _, path := range []string{"cluster.json", "pki/ca.crt", "etcd/wal"} {
		if err := host.StatError(c.Layout().At(path)); err != nil {
			t.Error(err)
		}
	}
}

// TestKeysEnabledMeanwhile: a snapshot names the keys that the cluster got while the save waited for the machine's
// lock, and is not put into the place of one that was saved meanwhile.
func TestKeysEnabledMeanwhile(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	c := plantest.Config(t)
	c.EncryptSecrets = false
	saveStarted(t, c)
	save := func() error { return SaveSnapshot(t.Context(), c.DataDir, "clean", false, io.Discard) }
	if err := whileLocked(t, save, func() error {
		c.EncryptSecrets = true
		return errors.Join(encryption.Enable(c.Layout(), time.Now()), datadir.Save(c))
	}); err != nil {
		t.Fatal(err)
	}
	keys, err := encryption.Read(c.Layout())
	if err != nil {
		t.Fatal(err)
	}
	if needed, err := encryption.NeededBy(c.Layout()); err != nil || len(needed[keys[0].Name]) != 1 {
		t.Errorf("snapshots need %v, %v", needed, err)
	}
	if err := snapshot.Remove(c.Layout(), "clean"); err != nil {
		t.Fatal(err)
	}
	if err := whileLocked(t, save, func() error {
		return snapshot.Save(t.Context(), c.Layout(), "clean", nil)
	}); err == nil || !strings.Contains(err.Error(), "there is a snapshot called clean already") {
		t.Errorf("saved twice: %v", err)
	}
}

// TestSaveFreezesWithoutSupervisor: processes of a cluster whose supervisor does not answer do not write while they are
// copied, and go on afterwards.
func TestSaveFreezesWithoutSupervisor(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	c := plantest.Config(t)
	c.EncryptSecrets = false
	saveStarted(t, c)
	groups, err := cgroup.Below(cgroup.Root, c.Mark())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(groups.Kill(ctx, ""), groups.Remove(ctx, "")); err != nil {
			t.Error(err)
		}
	})
	if err := groups.Make(cgroup.ControlPlane); err != nil {
		t.Skipf("SKIPPED: cannot make a cgroup: %v", err)
	}
	process := exec.Command("sleep", "1000")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	go process.Wait()
	for _, tree := range groups.Trees {
		if err := os.WriteFile(filepath.Join(tree, cgroup.ControlPlane, "cgroup.procs"),
			fmt.Append(nil, process.Process.Pid), 0); err != nil {
			t.Fatal(err)
		}
	}
	frozen := filepath.Join(t.TempDir(), "frozen")
	script := "#!/bin/sh\ncat " + filepath.Join(groups.Trees[0], "cgroup.events") + " " +
		filepath.Join(cgroup.Root, "freezer", c.Mark(), "freezer.state") + " > " + frozen + " 2> /dev/null\nexec /bin/cp \"$@\"\n"
	programs := t.TempDir()
	if err := os.WriteFile(filepath.Join(programs, "cp"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	if err := SaveSnapshot(t.Context(), c.DataDir, "clean", false, io.Discard); err != nil {
		t.Fatal(err)
	}
	if state, err := os.ReadFile(frozen); err != nil ||
		!strings.Contains(string(state), "frozen 1") && !strings.Contains(string(state), "FROZEN") {
		t.Errorf("while it was copied, the cluster was %q, %v", state, err)
	}
	if is, err := cgroup.FreezerOf(c.Mark()).IsFrozen(); is || err != nil {
		t.Errorf("frozen for good: %t, %v", is, err)
	}
}

// TestPrintOddSnapshots: neither a file among the snapshots nor half a copy hides the others.
func TestPrintOddSnapshots(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	saveStarted(t, c)
	if err := snapshot.Copy(t.Context(), c.DataDir, c.Layout().Snapshot("clean")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"half/etcd/wal", "notes"} {
		if err := host.WriteFile(filepath.Join(c.Layout().Snapshots(), path), nil); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := PrintSnapshots(c.DataDir, &out); err != nil {
		t.Fatal(err)
	}
	nodes := map[string]string{}
	for line := range strings.Lines(out.String()) {
		fields := strings.Fields(line)
		nodes[fields[0]] = fields[len(fields)-1]
	}
	if want := map[string]string{"NAME": "NODES", "clean": "2", "half": "?"}; !maps.Equal(nodes, want) {
		t.Errorf("%v, want %v", nodes, want)
	}
}

// TestRestoreAlone: a machine that has no others to forget keeps its state.
func TestRestoreAlone(t *testing.T) {
	t.Parallel()
	c := plantest.Config(t)
	c.EncryptSecrets = false
	saveStarted(t, c)
	if err := snapshot.Copy(t.Context(), c.DataDir, c.Layout().Snapshot("clean")); err != nil {
		t.Fatal(err)
	}
	if err := host.WriteFile(c.Layout().At("etcd", "wal"), []byte("later")); err != nil {
		t.Fatal(err)
	}
	if _, err := RestoreSnapshot(t.Context(), machine.Home(t.TempDir()), c.DataDir, "clean", true,
		io.Discard); err == nil ||
		!strings.Contains(err.Error(), "--force-new-cluster: no other machine has a control plane") {
		t.Errorf("restored: %v", err)
	}
	if state, err := os.ReadFile(c.Layout().At("etcd", "wal")); err != nil || string(state) != "later" {
		t.Errorf("the state is %q, %v", state, err)
	}
}

// TestRestoreBeside: a snapshot of another cluster of this machine, which has the name and the networks, is refused.
func TestRestoreBeside(t *testing.T) {
	emptyMachine(t)
	root, err := datadir.Resolve(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := machine.Home(root)
	original, target := plantest.Config(t), plantest.Config(t)
	original.DataDir, original.Name, original.EncryptSecrets = home.DataDir("dev"), "dev", false
	target.DataDir, target.Name, target.EncryptSecrets = home.DataDir("other"), "other", false
	saveStarted(t, original)
	saveStarted(t, target)
	if err := snapshot.Copy(t.Context(), original.DataDir, target.Layout().Snapshot("clean")); err != nil {
		t.Fatal(err)
	}
	if _, err := RestoreSnapshot(t.Context(), home, target.DataDir, "clean", false, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "the name dev") {
		t.Errorf("restored: %v", err)
	}
	if c, err := datadir.Load(target.DataDir); err != nil || c.Name != "other" {
		t.Errorf("the cluster is called %s, %v", c.Name, err)
	}
}

// emptyMachine hides the clusters of this machine from the test.
func emptyMachine(t *testing.T) {
	t.Helper()
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "config"))
	runtime.LockOSThread() // never unlocked: the thread's namespace ends with it
	_ = unix.Unshare(unix.CLONE_NEWNET)
}

// saveStarted writes what a start of the cluster makes.
func saveStarted(t *testing.T, c plan.Config) {
	t.Helper()
	if err := datadir.Save(c); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"pki/ca.crt", "etcd/wal"} {
		if err := host.WriteFile(c.Layout().At(path), []byte("own")); err != nil {
			t.Fatal(err)
		}
	}
}

// whileLocked runs a command while another one has the machine's lock. The other one makes its change when the command
// waits for the lock, and then ends. It returns the error of the command.
func whileLocked(t *testing.T, command, change func() error) error {
	t.Helper()
	lock, err := machine.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, lock.Name(), unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command() }()
	if err := host.Poll(t.Context(), time.Millisecond, func() (bool, error) {
		n, err := unix.Read(watch, make([]byte, 4096))
		if errors.Is(err, unix.EAGAIN) {
			err = nil
		}
		return n > 0 || len(ended) > 0, err
	}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(change(), lock.Close()); err != nil {
		t.Fatal(err)
	}
	return <-ended
}
