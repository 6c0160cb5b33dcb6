package job

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// TestCacheOfPodsIsBehind: a pod that the status waits for and that the cache has never shown is counted when the
// server has it no more, and is not counted again when its past arrives.
func TestCacheOfPodsIsBehind(t *testing.T) {
	t.Parallel()
	j := jobWith(nil)
	j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	j.ResourceVersion = "7"
	j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Failed: []types.UID{"x"}}
	x := podOf("x Failed exit=1")
	x.Labels = map[string]string{"a": "b"}
	x.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(j, kind())}
	server := &corev1.PodList{Items: []corev1.Pod{*x}}
	version := 7
	fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
		switch o := call.Object.(type) {
		case *batchv1.Job:
			version++
			j = o.DeepCopy()
			j.ResourceVersion = string(rune('0' + version))
			return j, nil
		case *corev1.Pod:
			return o, nil
		}
		return server, nil
	}}
	d := fake.Deps(t, epoch)
	d.Events = &record.FakeRecorder{}
	c, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	step := func() {
		t.Helper()
		controllertest.Put(t, c.jobs, j)
		if _, err := c.Reconcile(t.Context(), controller.KeyOf(j)); err != nil {
			t.Fatal(err)
		}
	}
	failed := func() int { return int(j.Status.Failed)*10 + len(j.Status.UncountedTerminatedPods.Failed) }
	if step(); failed() != 1 {
		t.Errorf("a pod that the server has is counted: %+v", j.Status)
	}
	server.Items = nil
	if step(); failed() != 10 {
		t.Errorf("a pod that is gone is not counted: %+v", j.Status)
	}
	controllertest.Put(t, c.pods, x)
	if step(); failed() != 10 {
		t.Errorf("it is counted again: %+v", j.Status)
	}
}
