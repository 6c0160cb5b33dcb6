package logs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func filesIn(t *testing.T, names ...string) Files {
	t.Helper()
	f := Files{Pods: t.TempDir(), Links: t.TempDir()}
	for _, n := range names {
		path := filepath.Join(f.Pods, n)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

func TestRemoveTheLogsOfAContainer(t *testing.T) {
	t.Parallel()
	f := filesIn(t, "ns_p_u1/c/0.log", "ns_p_u1/c/0.log.20260102-030405.gz", "ns_p_u1/c/0.log.20260102-030406",
		"ns_p_u1/c/1.log", "ns_p_u1/c/10.log")
	first, second := Container{"ns", "p", "u1", "c", "id0", 0}, Container{"ns", "p", "u1", "c", "id1", 1}
	for _, c := range []Container{first, second, second} { // a second link is fine
		if err := f.Link(c); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // what is gone is fine
		if err := f.Remove(first); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Remove(Container{"ns", "p", "u1", "none", "id", 0}); err != nil {
		t.Error("a container without logs:", err)
	}
	left, _ := filepath.Glob(filepath.Join(f.Pods, "ns_p_u1", "c", "*"))
	links, _ := filepath.Glob(filepath.Join(f.Links, "*"))
	if len(left) != 2 || len(links) != 1 || !strings.HasSuffix(links[0], "/p_ns_c-id1.log") {
		t.Error("left:", left, links)
	}
	if to, err := os.Readlink(links[0]); err != nil || to != filepath.Join(f.Pods, "ns_p_u1/c/1.log") {
		t.Error(to, err)
	}
	if err := f.RemovePod("ns", "p", "u1"); err != nil {
		t.Fatal(err)
	}
	dirs, _ := os.ReadDir(f.Pods)
	links, _ = filepath.Glob(filepath.Join(f.Links, "*"))
	if len(dirs) != 0 || len(links) != 0 {
		t.Error("left of the pod:", dirs, links)
	}
}

// Names of links are cut off at what a file system takes, as upstream does, so that of several containers with one name
// the newest has the link.
func TestLongLinks(t *testing.T) {
	t.Parallel()
	f := filesIn(t)
	name := strings.Repeat("n", 200)
	old, now := Container{"ns", name, "u1", strings.Repeat("c", 60), "id0", 0},
		Container{"ns", name, "u1", strings.Repeat("c", 60), "id1", 1}
	for _, c := range []Container{old, now} {
		if err := f.Link(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Remove(old); err != nil {
		t.Fatal(err)
	}
	want := (name + "_ns_" + old.Name + "-id")[:251] + ".log"
	if to, err := os.Readlink(filepath.Join(f.Links, want)); err != nil || to != f.path(now) {
		t.Errorf("%q, %v; want %q", to, err, f.path(now))
	}
	if links, _ := os.ReadDir(f.Links); len(links) != 1 {
		t.Errorf("links: %v", links)
	}
}

func TestWithoutLinks(t *testing.T) {
	f := filesIn(t, "ns_p_u1/c/0.log")
	f.Links = ""
	t.Chdir(t.TempDir()) // a name without a directory would be of a file here
	c := Container{"ns", "p", "u1", "c", "id0", 0}
	if err := os.WriteFile("p_ns_c-id0.log", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{f.Link(c), f.Remove(c), f.RemovePod("ns", "p", "u1")} {
		if err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Lstat("p_ns_c-id0.log"); err != nil {
		t.Error(err)
	}
}

func TestLogsGoWithTheirPods(t *testing.T) {
	t.Parallel()
	f := filesIn(t, "other/x")
	for _, uid := range []types.UID{"live", "dead"} {
		// The log is being rotated: it was renamed, the runtime has not made the new one yet.
		if err := os.MkdirAll(filepath.Join(f.PodDir("ns", "p", uid), "c"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := f.Link(Container{"ns", "p", uid, "c", string(uid), 0}); err != nil {
			t.Fatal(err)
		}
	}
	err := f.Clean(func(uid types.UID, remove func() error) error {
		if uid == "live" {
			return nil
		}
		return remove()
	})
	if err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[types.UID]bool{"live": true, "dead": false} {
		_, err := os.Stat(f.PodDir("ns", "p", uid))
		_, lerr := os.Lstat(filepath.Join(f.Links, "p_ns_c-"+string(uid)+".log"))
		if (err == nil) != want || (lerr == nil) != want {
			t.Errorf("%s: logs %v, link %v", uid, err, lerr)
		}
	}
	if _, err := os.Stat(filepath.Join(f.Pods, "other", "x")); err != nil {
		t.Error("what is no pod's is gone:", err)
	}
}

// Who cleans up /var/log may take the directory of links as well: logs go with their pods all the same.
func TestTheDirectoryOfLinksIsGone(t *testing.T) {
	t.Parallel()
	f := filesIn(t, "ns_p_u1/c/0.log", "ns_p_u2/c/0.log")
	if err := os.RemoveAll(f.Links); err != nil {
		t.Fatal(err)
	}
	if err := f.RemovePod("ns", "p", "u1"); err != nil {
		t.Error(err)
	}
	if err := f.Clean(func(_ types.UID, remove func() error) error { return remove() }); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(f.Pods); err != nil || len(left) > 0 {
		t.Errorf("%v left, %v", left, err)
	}
}
