package rootless

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const subuid = `# comment
anna:100000:65536
1000:300000:1000
bert:165536:65536
anna:x:5
anna:400000:0
`

// TestParseRanges: blocks by name and by number count, whatever is wrong is skipped.
func TestParseRanges(t *testing.T) {
	t.Parallel()
	got := parseRanges(subuid, "anna", 1000)
	if want := []idRange{{100000, 65536}, {300000, 1000}}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	if got := parseRanges(subuid, "carl", 1002); got != nil {
		t.Errorf("of nobody: %v", got)
	}
	file := filepath.Join(t.TempDir(), "subuid")
	if err := os.WriteFile(file, []byte(subuid), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := CountIDs(file, "anna", 1000); n != 66536 {
		t.Errorf("%d IDs", n)
	}
	if n := CountIDs(file+".none", "anna", 1000); n != 0 {
		t.Errorf("%d IDs without a file", n)
	}
}

// TestMapArguments: the user is root inside, and the blocks follow each other.
func TestMapArguments(t *testing.T) {
	t.Parallel()
	got := strings.Join(mapArguments(1000, []idRange{{100000, 65536}, {300000, 1000}}), " ")
	if want := "0 1000 1 1 100000 65536 65537 300000 1000"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}
