package kubelet

import (
	"io"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/config"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/status"
)

// plain returns a Kubelet that can decide, but not act.
func plain() *Kubelet {
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	return &Kubelet{cfg: Config{QOS: func(*corev1.Pod) corev1.PodQOSClass { return corev1.PodQOSBestEffort }}, log: log, status: status.New(nil, log),
		states: map[types.UID]*podState{}, mirrors: map[string]*corev1.Pod{}, pods: map[types.UID]*corev1.Pod{},
		admission: admission.New(admission.Config{Node: func() *corev1.Node { return nil }, Static: config.IsStatic, Wake: func(types.UID) {},
			Allocatable: func() corev1.ResourceList { return corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")} },
			QOS:         func(*corev1.Pod) corev1.PodQOSClass { return corev1.PodQOSBestEffort }, Preempted: func(types.UID, corev1.ResourceName) {},
			Refuse: func(*corev1.Pod) *admission.Rejection { return nil }})}
}

// The back-off is that of a container's name and content: a corrected image is tried at once.
func TestACorrectedImageDoesNotWait(t *testing.T) {
	t.Parallel()
	k := plain()
	st := k.state("u")
	pod := func(image string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "p", Namespace: "n"},
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways, Containers: []corev1.Container{{Name: "c", Image: image}}}}
	}
	rt := &runtime.PodStatus{UID: "u", Sandboxes: []runtime.Sandbox{{ID: "s", Ready: true, IPs: []string{"10.0.0.1"}}}}
	starts := func(image string) int { return len(lifecycle.Next(k.facts(pod(image), st, rt, false)).Start) }

	wrong := st.starts(&pod("typo:1").Spec.Containers[0])
	wrong.retry, wrong.reason = time.Now().Add(5*time.Minute), lifecycle.Reason{Reason: "ImagePullBackOff"}
	if starts("typo:1") != 0 {
		t.Error("an image that cannot be pulled is not tried before its time")
	}
	if starts("right:1") != 1 || len(st.reasons(pod("right:1"))) != 0 {
		t.Error("the corrected image waits out the back-off of the wrong one")
	}

	crashing := st.starts(&pod("bad:1").Spec.Containers[0])
	crashing.backOff = lifecycle.BackOff{Delay: 5 * time.Minute, Updated: time.Now().Add(-time.Minute)}
	rt.Containers = []runtime.Container{{ID: runtime.ContainerID{ID: "x"}, Name: "c", SandboxID: "s", State: runtime.StateExited, ExitCode: 1, FinishedAt: time.Now()}}
	if starts("bad:1") != 0 {
		t.Error("a crashing container is not started before its time")
	}
	if starts("good:1") != 1 {
		t.Error("the corrected container waits out the crashes of the bad one")
	}
}
