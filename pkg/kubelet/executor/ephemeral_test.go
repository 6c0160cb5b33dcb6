package executor

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
)

// TestEphemeralTarget: an ephemeral container waits for the container whose processes it is to see; without it, it
// would see only its own.
func TestEphemeralTarget(t *testing.T) {
	t.Parallel()
	e, f, _ := newExecutor(t)
	pod, p := onePod(), NewPod()
	pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{
		{TargetContainerName: "c",
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "i"}}}
	facts := factsOf(pod)
	plan := lifecycle.Plan{Start: []lifecycle.Start{
		{Container: (*corev1.Container)(&pod.Spec.EphemeralContainers[0].EphemeralContainerCommon),
			Kind: runtime.Ephemeral}}}
	if err := e.Act(t.Context(), facts, p, plan); err != nil {
		t.Fatal(err)
	}
	want := lifecycle.Reason{Reason: "CreateContainerConfigError", Message: "unable to find target container c"}
	if got := p.Reasons(pod)["debug"]; got != want || f.request.Container != nil {
		t.Errorf("without the target: %+v; made %v", got, f.request.Container)
	}
	facts.Runtime.Containers = []runtime.Container{
		{Name: "c", ID: runtime.ContainerID{Type: "containerd", ID: "target"}, State: runtime.StateRunning}}
	if err := e.Act(t.Context(), facts, p, plan); err != nil {
		t.Fatal(err)
	}
	if got := p.Reasons(pod)["debug"]; got != (lifecycle.Reason{}) || f.request.Options.TargetID != "target" {
		t.Errorf("with the target: %+v, joins %q", got, f.request.Options.TargetID)
	}
}
