package kubelet

import (
	"maps"
	"testing"
	"time"

	"bonsai/pkg/kubelet/cgroup"
)

// A pod's network is told of once, also while its status does not tell of a container that runs.
func TestSandboxes(t *testing.T) {
	t.Parallel()
	at := time.Unix(100, 0)
	groups := []cgroup.Group{{Path: "/kubepods"}, {Path: "/kubepods/poda", Pod: "a"},
		{Pod: "a", ID: "in-its-hook", Made: at.Add(2 * time.Second)},
		{Pod: "a", ID: "runs", Made: at.Add(time.Second)}, {Pod: "a", ID: "sandbox-a", Made: at},
		{Pod: "b", ID: "sandbox-b", Made: at}, {Pod: "b", ID: "starts", Made: at.Add(time.Second)},
		{Pod: "c", ID: "alone", Made: at}}
	got := sandboxes(groups, map[string]bool{"runs": true, "alone": true})
	if want := map[string]bool{"sandbox-a": true, "sandbox-b": true}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
