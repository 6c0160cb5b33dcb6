package backends

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
)

// TestWritten: a cache has caught up when it shows the last write of each slice, or is past it; then nothing is
// remembered.
func TestWritten(t *testing.T) {
	t.Parallel()
	slice := func(version string) []*discoveryv1.EndpointSlice {
		return []*discoveryv1.EndpointSlice{{ObjectMeta: metav1.ObjectMeta{Name: "s", ResourceVersion: version}}}
	}
	leaving := slice("5")
	leaving[0].DeletionTimestamp = new(metav1.Now())
	for name, c := range map[string]struct {
		version string
		have    []*discoveryv1.EndpointSlice
		seen    string
		want    bool
	}{
		"shows it":                  {"7", slice("7"), "7", true},
		"shows a later one":         {"7", slice("8"), "8", true},
		"shows an earlier one":      {"7", slice("6"), "6", false},
		"does not show it yet":      {"7", nil, "6", false},
		"is past it":                {"7", nil, "9", true},
		"shows what was deleted":    {"", slice("7"), "7", false},
		"shows that it is leaving":  {"", leaving, "7", true},
		"shows that it was deleted": {"", nil, "7", true},
	} {
		w, key := NewWritten(), controller.Key{Namespace: "ns", Name: "svc"}
		w.Remember(key, "s", c.version)
		if got := w.CaughtUp(key, c.have, c.seen); got != c.want ||
			len(w.versions) != map[bool]int{true: 0, false: 1}[c.want] {
			t.Errorf("%s: %t, remembers %v", name, got, w.versions)
		}
		if !w.CaughtUp(controller.Key{Name: "other"}, nil, "") {
			t.Errorf("%s: another Service waits", name)
		}
	}
}
