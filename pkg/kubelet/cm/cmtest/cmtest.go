// Package cmtest tests the contract of cm.Provider.
package cmtest

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/runtime"
)

// Run tests a Provider. start makes it as a kubelet does that has just started, on the same node each time. The pod has
// nothing on that node at first, and is one that is given something.
func Run(t *testing.T, start func() cm.Provider, pod *corev1.Pod) {
	t.Helper()
	if p, is := start().(cm.Preparer); is && p.FailedReason() == "" {
		t.Error("the event of a failed Prepare has no reason")
	}
	if err := start().Unprepare(t.Context(), pod.UID); err != nil {
		t.Error("a pod that has nothing:", err)
	}
	has(t, start(), pod.UID, false)
	first := start()
	if err := (&cm.Manager{Providers: []cm.Provider{first}}).Admit(t.Context(), pod); err != nil {
		t.Fatal("admit:", err)
	}
	given := prepare(t, first, pod)
	if again := prepare(t, first, pod); !reflect.DeepEqual(again, given) {
		t.Errorf("a new sandbox gets %+v, the first one had %+v", again, given)
	}
	restarted := start()
	has(t, restarted, pod.UID, true)
	if after := prepare(t, restarted, pod); !reflect.DeepEqual(after, given) {
		t.Errorf("after a restart the pod gets %+v, before %+v", after, given)
	}
	never := start() // seen the pod
	for range 2 {
		if err := never.Unprepare(t.Context(), pod.UID); err != nil {
			t.Error("taking back:", err)
		}
	}
	has(t, start(), pod.UID, false)
}

// given is what a pod's sandbox and first container are made with.
type given struct {
	sandbox   runtime.SandboxOptions
	container runtime.ContainerOptions
}

// prepare prepares the pod and returns what its sandbox and first container get, which must be something.
func prepare(t *testing.T, p cm.Provider, pod *corev1.Pod) (g given) {
	t.Helper()
	m := &cm.Manager{Providers: []cm.Provider{p}, Event: func(*corev1.Pod, string, string, string) {}}
	if err := m.Prepare(t.Context(), pod); err != nil {
		t.Fatal("prepare:", err)
	}
	m.Sandbox(pod, &g.sandbox)
	if err := m.Container(pod, &pod.Spec.Containers[0], &g.container); err != nil {
		t.Error("a container:", err)
	}
	if reflect.DeepEqual(g, given{}) {
		t.Error("neither the sandbox nor the container gets anything")
	}
	return g
}

// has checks whether p says that the pod has something, by Prepared.
func has(t *testing.T, p cm.Provider, uid types.UID, want bool) {
	t.Helper()
	uids, err := p.Prepared()
	if err != nil || slices.Contains(uids, uid) != want {
		t.Errorf("pods that have something: %v, %v; the pod has: %v", uids, err, want)
	}
}
