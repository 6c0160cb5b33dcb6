package host

import "testing"

// TestIsPartOfIDs: only the first user namespace of a machine has all IDs.
func TestIsPartOfIDs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"         0          0 4294967295\n":                                   false,
		"         0       1000          1\n         1     100000      65536\n": true,
		"         0          0      65536\n":                                   true,
	} {
		if got := isPartOfIDs(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}
