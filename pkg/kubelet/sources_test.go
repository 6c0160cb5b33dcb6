package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/config"
	"bonsai/pkg/kubelet/runtime"
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
