package daemon

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const someSmaps = `00400000-00401000 r--p 00000000 fe:00 7 /usr/bin/kubelet
Rss:                   4 kB
Anonymous:             0 kB
00401000-01791000 r-xp 00001000 fe:00 7                          /usr/bin/kubelet
Rss:                 400 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
01791000-02791000 r-xp 00001000 fe:00 7                          /usr/bin/kubelet
Anonymous:             4 kB
02791000-02891000 rw-p 02001000 fe:00 7                          /usr/bin/kubelet
Anonymous:             0 kB
02891000-02991000 r--p 00000000 fe:00 8                          /lib/kubelet
Anonymous:             0 kB
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7ffe76c00000-7ffe76c21000 rw-p 00000000 00:00 0                  [stack]
Anonymous:            12 kB
`

// TestUnchangedOf: only pages that the file has as they are may go: none that can be written, is the process's own, or
// is of another file.
func TestUnchangedOf(t *testing.T) {
	t.Parallel()
	got, err := unchangedOf(strings.NewReader(someSmaps), "/usr/bin/kubelet")
	if want := []mapping{{0x400000, 0x401000}, {0x401000, 0x1791000}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%x, %v, want %x", got, err, want)
	}
	if _, err := unchangedOf(strings.NewReader("no mapping\n"), "x"); err == nil {
		t.Error("what is no mapping was read as one")
	}
}

// TestUnmapUnused: pages of the test's own binary that were used once are no more its own, and it goes on.
func TestUnmapUnused(t *testing.T) {
	touched := func() int {
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		kb, err := strconv.Atoi(string(regexp.MustCompile(`RssFile:\s+(\d+)`).FindSubmatch(status)[1]))
		if err != nil {
			t.Fatal(err)
		}
		return kb
	}
	touched() // the second time needs no more pages
	before := touched()
	if err := unmapUnused(); err != nil {
		t.Fatal(err)
	}
	if after := touched(); after > before/2 {
		t.Errorf("%d kB of files before, %d kB after", before, after)
	}
}
