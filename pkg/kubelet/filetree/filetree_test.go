package filetree

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// told notes what a walk tells of.
type told struct {
	entries map[string]int
	left    []string
	// before, if there is one, is called with each name.
	before func(name string)
}

func (t *told) Entry(dir int, name string) bool {
	if t.before != nil {
		t.before(name)
	}
	t.entries[name]++
	var st unix.Stat_t
	return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR
}

func (t *told) Leave(dir int, name string, err error) {
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) // the descriptor is that of the directory above
	}
	if err != nil {
		name += ": " + err.Error()
	}
	t.left = append(t.left, name)
}

func walkOf(ctx context.Context, t *testing.T, dir string, v Visitor) error {
	t.Helper()
	root, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Walk(ctx, root, v)
}

// deep makes a directory at each level, d0 in dir, d1 in that, and beside each one the directory s0, s1, which has a
// file f0, f1.
func deep(t *testing.T, dir string, levels int) {
	t.Helper()
	for i := range levels {
		s := filepath.Join(dir, "s"+strconv.Itoa(i))
		dir = filepath.Join(dir, "d"+strconv.Itoa(i))
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(s, 0o700),
			os.WriteFile(filepath.Join(s, "f"+strconv.Itoa(i)), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWalk: the way back from any depth leads to what is beside it; each directory is left once, after what is in it.
func TestWalk(t *testing.T) {
	t.Parallel()
	const levels = 3 * kept
	dir := t.TempDir()
	deep(t, dir, levels)
	v := &told{entries: map[string]int{}}
	if err := walkOf(t.Context(), t, dir, v); err != nil {
		t.Fatal(err)
	}
	for i := range levels {
		for _, kind := range []string{"d", "s", "f"} {
			if name := kind + strconv.Itoa(i); v.entries[name] != 1 || kind != "f" && !slices.Contains(v.left, name) {
				t.Errorf("%s: told of %d times, left: %v", name, v.entries[name], slices.Contains(v.left, name))
			}
		}
	}
	if len(v.left) != 2*levels || slices.Index(v.left, "d0") < slices.Index(v.left, "d1") {
		t.Errorf("left: %v", v.left)
	}
}

// TestWalkAMovedDirectory: a directory that is moved out while the walk is in it does not lead it out of its root.
func TestWalkAMovedDirectory(t *testing.T) {
	t.Parallel()
	const levels = 2 * kept
	dir, outside := t.TempDir(), t.TempDir()
	deep(t, dir, levels)
	if err := os.Mkdir(filepath.Join(outside, "secret"), 0o700); err != nil {
		t.Fatal(err)
	}
	moved := dir
	for i := range levels - 10 {
		moved = filepath.Join(moved, "d"+strconv.Itoa(i))
	}
	v := &told{entries: map[string]int{}, before: func(name string) {
		if name == "f"+strconv.Itoa(levels-1) {
			if err := os.Rename(moved, filepath.Join(outside, "moved")); err != nil {
				t.Error(err)
			}
		}
	}}
	if err := walkOf(t.Context(), t, dir, v); err != nil {
		t.Fatal(err)
	}
	if v.entries["secret"] != 0 {
		t.Error("the walk left its root")
	}
	if v.entries["f0"] != 1 || v.entries["s"+strconv.Itoa(levels-1)] != 1 {
		t.Errorf("told of %v", slices.Sorted(maps.Keys(v.entries)))
	}
}

// TestWalkMounts: what is mounted in a tree is not of it, even from the same file system; nor is what a link points to.
func TestWalkMounts(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("SKIPPED: this test mounts a directory, which needs root")
	}
	dir, outside := t.TempDir(), t.TempDir()
	point := filepath.Join(dir, "point")
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "secret"), nil, 0o600), os.Mkdir(point, 0o700),
		os.Symlink(outside, filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(outside, point, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(point, 0); err != nil {
			t.Error(err)
		}
	})
	v := &told{entries: map[string]int{}}
	if err := walkOf(t.Context(), t, dir, v); err != nil {
		t.Fatal(err)
	}
	if v.entries["secret"] != 0 || !slices.Equal(v.left, []string{"point: " + unix.EXDEV.Error()}) {
		t.Errorf("told of %v, left %v", v.entries, v.left)
	}
	if _, err := Open(filepath.Join(dir, "link")); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("a root that is a link: %v", err)
	}
}

// TestWalkEnds: with its context.
func TestWalkEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep(t, dir, 3)
	ctx, cancel := context.WithCancel(t.Context())
	v := &told{entries: map[string]int{}, before: func(string) { cancel() }}
	if err := walkOf(ctx, t, dir, v); !errors.Is(err, context.Canceled) || v.entries["d1"] != 0 {
		t.Errorf("%v, told of %v", err, v.entries)
	}
}
