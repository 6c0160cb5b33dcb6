package write

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/distribution/reference"
)

// FuzzCheckImage: the library's own expression is the oracle.
func FuzzCheckImage(f *testing.F) {
	hex := strings.Repeat("0aF", 11)
	for _, name := range []string{
		"", "busybox", "localhost/busybox:1.0", "Busybox", "host.example:5000/a/b_c__d--e.f:v1.2_3-x@sha256:" + hex,
		"a@sha256:" + hex, "a@sha256:" + hex[:31],
		"a@b+c.d_e-f:" + hex, "[::1]:5000/a", "[::1%eth0]/a", "[::1]", "a:", "a:" + strings.Repeat("t", 128),
		"a:" + strings.Repeat("t", 129), "a//b", "a..b/c", "-a/b", "a-/b",
		"a.b-/c", "a___b", "a._b", "HOST/path", "HOST", "a/B", "a:-t", "a:5000/b", "a:b/c", "a\n", "ä", "a b",
	} {
		f.Add(name)
	}
	// Names put together of what the grammar has, so that most are nearly right.
	parts := []string{"a", "B", "0", ".", "_", "-", "/", ":", "@", "[", "]", "+", "sha256:", hex, "host:5000/"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var name strings.Builder
		for range 1 + random.IntN(9) {
			name.WriteString(parts[random.IntN(len(parts))])
		}
		f.Add(name.String())
	}
	f.Fuzz(func(t *testing.T, name string) {
		if got, want := CheckImage(name) == nil, reference.ReferenceRegexp.MatchString(name); got != want {
			t.Errorf("%q: %v, the library says %v", name, got, want)
		}
	})
}

// TestCheckImageError: kubectl shows the library's words.
func TestCheckImageError(t *testing.T) {
	t.Parallel()
	if err := CheckImage("A:"); err == nil || err.Error() != reference.ErrReferenceInvalidFormat.Error() {
		t.Errorf("%v", err)
	}
}
