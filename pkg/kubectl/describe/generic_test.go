package describe

import "testing"

func TestWords(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"leaseDurationSeconds": "Lease Duration Seconds", "apiVersion": "API Version", "uid": "UID", "kind": "Kind"} {
		if got := words(in); got != want {
			t.Errorf("words(%q) = %q, want %q", in, got, want)
		}
	}
}
