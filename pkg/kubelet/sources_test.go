package kubelet

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/config"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/status"
)

// A static pod that comes back begins anew; the mirror of its earlier life would say that it has ended already.
func TestAMirrorSpeaksOfOneLife(t *testing.T) {
	t.Parallel()
	k := plain()
	k.outlived, k.mirrorsDue = map[types.UID]bool{}, make(chan struct{}, 1)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "job-n1", Namespace: "default", UID: "s", Annotations: map[string]string{
		runtime.AnnotationConfigSource: runtime.SourceFile, runtime.AnnotationConfigHash: "h"}}}
	mirror := func(uid types.UID) *corev1.Pod {
		m := config.Mirror(pod, nil)
		m.UID, m.ResourceVersion, m.Status.Phase = uid, string(uid), corev1.PodSucceeded
		return m
	}
	k.pods[pod.UID] = pod
	k.mirror(mirror("1"), false)
	if got := k.withStatus(pod).Status.Phase; got != corev1.PodSucceeded {
		t.Fatalf("phase %q", got)
	}
	k.outlived["1"] = true // as Forget notes it
	k.status.Forget(pod.UID)
	if got := k.withStatus(pod).Status.Phase; got != "" {
		t.Errorf("phase of an earlier life: %q", got)
	}
	k.mirror(mirror("1"), true)
	k.mirror(mirror("2"), false)
	if k.mirrorLocked(pod) == nil || len(k.outlived) != 0 {
		t.Error("the new mirror is not taken")
	}
}

// Every condition that lifecycle computes reaches the API: one that status.Own does not name is taken for somebody else's and dropped.
func TestEveryConditionIsOurs(t *testing.T) {
	t.Parallel()
	rules := []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}}}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", RestartPolicyRules: rules}}}}
	rt := &runtime.PodStatus{Sandboxes: []runtime.Sandbox{{ID: "s", Ready: true}},
		Containers: []runtime.Container{{ID: runtime.ContainerID{ID: "x"}, Name: "c", SandboxID: "s", State: runtime.StateExited, ExitCode: 42}}}
	got := lifecycle.Status(lifecycle.Facts{Pod: pod, Runtime: rt, Now: time.Now()}, lifecycle.Report{Disruption: "evicted"})
	has := func(kind corev1.PodConditionType) bool {
		return slices.ContainsFunc(got.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	}
	if !has(corev1.DisruptionTarget) {
		t.Errorf("the kubelet ends the pod, and its conditions do not say so: %v", got.Conditions)
	}
	if !has(corev1.AllContainersRestarting) {
		t.Errorf("the pod's containers are to be restarted, and its conditions do not say so: %v", got.Conditions)
	}
	for _, c := range got.Conditions {
		if !status.Own(c.Type) {
			t.Errorf("condition %s is computed, and never written", c.Type)
		}
	}
}
