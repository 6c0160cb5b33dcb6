package live

import (
	"strings"
	"testing"
	"testing/iotest"
)

// TestTail: whatever the length of a log and of its parts, its end is kept.
func TestTail(t *testing.T) {
	t.Parallel()
	const most = 64
	for n := range 5 * most {
		text := strings.Repeat("0123456789", n)[:n]
		got, err := tail(iotest.OneByteReader(strings.NewReader(text)), most)
		if err != nil || !strings.HasSuffix(text, got) || len(got) < min(n, most) || len(got) > 2*most {
			t.Fatalf("the tail of %d bytes is %d bytes %q, %v", n, len(got), got, err)
		}
	}
}
