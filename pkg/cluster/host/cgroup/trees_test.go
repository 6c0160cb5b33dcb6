package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestTreesBelow: a cluster's groups are found at the root, in a scope and in a unit, those of others are not looked
// into.
func TestTreesBelow(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	const mark = "bonsai-0a0b0c0d"
	want := []string{mark, "system.slice/" + mark + ".scope/" + mark,
		"system.slice/system-bonsai.slice/bonsai@dev.service/" + mark}
	for _, dir := range append([]string{mark + "/n1/kubepods/" + mark, "bonsai-ffffffff/n1/" + mark, "user.slice"},
		want...) {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got, err := TreesBelow(root, mark)
	for i := range got {
		got[i], _ = filepath.Rel(root, got[i])
	}
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := TreesBelow(root, "bonsai-00000000"); err != nil || len(got) > 0 {
		t.Errorf("of none: %q, %v", got, err)
	}
}
