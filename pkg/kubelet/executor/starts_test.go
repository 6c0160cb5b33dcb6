package executor

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
)

// The back-off is that of a container's name and content: a corrected image is tried at once.
func TestACorrectedImageDoesNotWait(t *testing.T) {
	t.Parallel()
	e, st := &Executor{}, NewPod()
	pod := func(image string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Name: "p", Namespace: "n"},
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways,
				Containers: []corev1.Container{{Name: "c", Image: image}}}}
	}
	rt := &runtime.PodStatus{UID: "u", Sandboxes: []runtime.Sandbox{{ID: "s", Ready: true, IPs: []string{"10.0.0.1"}}}}
	starts := func(image string) int {
		return len(lifecycle.Next(
			lifecycle.Facts{Pod: pod(image), Runtime: rt, BackOff: e.BackOff(pod(image), st, rt),
				Now: time.Now()}).Start)
	}

	wrong := st.starts(&pod("typo:1").Spec.Containers[0])
	wrong.retry, wrong.reason = time.Now().Add(5*time.Minute), lifecycle.Reason{Reason: "ImagePullBackOff"}
	if starts("typo:1") != 0 {
		t.Error("an image that cannot be pulled is not tried before its time")
	}
	if starts("right:1") != 1 || len(st.Reasons(pod("right:1"))) != 0 {
		t.Error("the corrected image waits out the back-off of the wrong one")
	}

	crashing := st.starts(&pod("bad:1").Spec.Containers[0])
	crashing.backOff = lifecycle.BackOff{Delay: 5 * time.Minute, Updated: time.Now().Add(-time.Minute)}
	rt.Containers = []runtime.Container{
		{ID: runtime.ContainerID{ID: "x"}, Name: "c", SandboxID: "s", State: runtime.StateExited, ExitCode: 1,
			FinishedAt: time.Now()}}
	if starts("bad:1") != 0 {
		t.Error("a crashing container is not started before its time")
	}
	if starts("good:1") != 1 {
		t.Error("the corrected container waits out the crashes of the bad one")
	}
}

func TestCheckUser(t *testing.T) {
	t.Parallel()
	yes, zero, one := true, int64(0), int64(1)
	for name, c := range map[string]struct {
		sc  *corev1.SecurityContext
		img runtime.Image
		ok  bool
	}{
		"no demand":       {nil, runtime.Image{}, true},
		"image of root":   {&corev1.SecurityContext{RunAsNonRoot: &yes}, runtime.Image{UID: &zero}, false},
		"image says none": {&corev1.SecurityContext{RunAsNonRoot: &yes}, runtime.Image{}, false},
		"named user":      {&corev1.SecurityContext{RunAsNonRoot: &yes}, runtime.Image{Username: "web"}, false},
		"user of its own": {&corev1.SecurityContext{RunAsNonRoot: &yes, RunAsUser: &one}, runtime.Image{UID: &zero},
			true},
		"root demanded": {&corev1.SecurityContext{RunAsNonRoot: &yes, RunAsUser: &zero}, runtime.Image{UID: &one},
			false},
	} {
		if err := checkUser(&corev1.Pod{}, &corev1.Container{SecurityContext: c.sc}, &c.img); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
