package architecture

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// changelogFaults returns what is wrong with the form of a changelog: lines that are too wide, entries that are not
// below the heading of a component, and bad prose (CONTRIBUTING.md).
func changelogFaults(page string) []string {
	var faults []string
	component, n := false, 0
	for line := range strings.Lines(page) {
		n++
		line = strings.TrimRight(line, "\n")
		if columns(line) > widest {
			faults = append(faults, fmt.Sprintf("line %d is wider than %d columns", n, widest))
		}
		if strings.HasPrefix(line, "#") {
			component = strings.HasPrefix(line, "#### ")
		}
		if strings.HasPrefix(line, "- ") && !component {
			faults = append(faults, fmt.Sprintf("line %d: an entry without a component (####) above it", n))
		}
	}
	for _, piece := range markdownProse(page) {
		faults = append(faults, proseFaults(piece)...)
	}
	return faults
}

// TestChangelog: users find what changes for them below the component, in lines and sentences that they can read.
func TestChangelog(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range changelogFaults(string(page)) {
		t.Errorf("CHANGELOG.md: %s", fault)
	}
}

// TestChangelogFaults: each fault of the form is found.
func TestChangelogFaults(t *testing.T) {
	const good = "## Unreleased\n\n### Fixed\n\n#### kubelet\n- It works.\n"
	for page, want := range map[string]int{
		good: 0,
		good + "- " + strings.Repeat("wide ", 24):    1,
		good + "### Changed\n- It works.\n":          1,
		good + "- A pod of which nobody knows.\n":    1,
		good + "- " + strings.Repeat("a ", 41) + ".": 1,
	} {
		if got := changelogFaults(page); len(got) != want {
			t.Errorf("%q: %d faults, not %d: %q", page, len(got), want, got)
		}
	}
}
