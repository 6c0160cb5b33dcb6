package kubelet

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

func TestUnusedSandboxes(t *testing.T) {
	t.Parallel()
	p := &runtime.PodStatus{UID: types.UID("u"), Sandboxes: []runtime.Sandbox{{ID: "newest"}, {ID: "ready", Ready: true}, {ID: "used"}, {ID: "old"}},
		Containers: []runtime.Container{{Name: "c", SandboxID: "used", State: runtime.StateExited}}}
	if got := unused(p); len(got) != 1 || got[0] != "old" {
		t.Error(got)
	}
}
