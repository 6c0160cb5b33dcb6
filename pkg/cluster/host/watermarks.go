package host

import (
	"os"
	"strconv"
	"strings"
)

// KeptFree returns how many bytes of memory the kernel keeps free for itself: with less, it first takes back what
// processes have of files (the high watermarks of all zones, proc_zoneinfo(5)). It is 0 where the kernel does not say.
func KeptFree() int64 {
	text, err := os.ReadFile("/proc/zoneinfo")
	if err != nil {
		return 0
	}
	return highPages(string(text)) * int64(os.Getpagesize())
}

// highPages sums up the high watermarks, in pages. The lists of each processor have lines "high:" of their own.
func highPages(zoneinfo string) (pages int64) {
	for line := range strings.Lines(zoneinfo) {
		f := strings.Fields(line)
		if len(f) != 2 || f[0] != "high" {
			continue
		}
		if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
			pages += n
		}
	}
	return pages
}
