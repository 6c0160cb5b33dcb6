package cri

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/runtime"
)

func TestMemoryHoldsOnlyWhileTheStateDoes(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.keepSandbox("s", &runtimeapi.PodSandboxStatus{State: runtimeapi.PodSandboxState_SANDBOX_READY})
	if m.sandbox(runtime.Sandbox{ID: "s", Ready: true}) == nil || m.sandbox(runtime.Sandbox{ID: "s"}) != nil ||
		m.sandbox(runtime.Sandbox{ID: "x"}) != nil {
		t.Error("a sandbox's details hold while it is ready")
	}
	in := func(state runtime.State) runtime.Container {
		return runtime.Container{ID: runtime.ContainerID{ID: "c"}, State: state}
	}
	for _, c := range []struct {
		kept, listed runtime.State
		holds        bool
	}{
		{runtime.StateCreated, runtime.StateCreated, false},
		{runtime.StateCreated, runtime.StateRunning, false},
		{runtime.StateRunning, runtime.StateRunning, true},
		{runtime.StateRunning, runtime.StateExited, false},
		{runtime.StateExited, runtime.StateExited, true},
		{runtime.StateUnknown, runtime.StateUnknown, false},
	} {
		m.keepContainer(in(c.kept), m.reads())
		if _, ok := m.container(in(c.listed)); ok != c.holds {
			t.Errorf("kept %s, listed %s: %v", c.kept, c.listed, ok)
		}
	}
	m.retain([]*runtime.PodStatus{{Sandboxes: []runtime.Sandbox{{ID: "s"}}}})
	if len(m.sandboxes) != 1 || len(m.containers) != 0 {
		t.Errorf("after a list without the container: %d sandboxes, %d containers", len(m.sandboxes), len(m.containers))
	}
}
