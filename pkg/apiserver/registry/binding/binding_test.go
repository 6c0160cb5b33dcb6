package binding_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/registry/binding"
	"bonsai/pkg/apiserver/registry/registrytest"
)

func TestBind(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	target := corev1.ObjectReference{Kind: "Node", Name: "n1"}
	meta := metav1.ObjectMeta{Name: "web"}
	for _, c := range []struct {
		name, url string
		pod       func(*corev1.Pod)
		binding   corev1.Binding
		code      int32
		message   string
	}{
		{name: "bound", url: "web",
			binding: corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "uid-web", Annotations: map[string]string{"a": "b"}},
				Target:     target}},
		{name: "by the bindings resource", binding: corev1.Binding{ObjectMeta: meta, Target: target}},
		{name: "another name", url: "web",
			binding: corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Target: target}, code: 400,
			message: "name in URL does not match name in Binding object"},
		{name: "no such pod", url: "x",
			binding: corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Target: target}, code: 404,
			message: `pods "x" not found`},
		{name: "not a node", url: "web",
			binding: corev1.Binding{ObjectMeta: meta, Target: corev1.ObjectReference{Kind: "Rack", Name: "r"}},
			code:    422,
			message: `Binding "web" is invalid: target.kind: Unsupported value: "Rack": supported values: "Node", "<empty>"`},
		{name: "bound before", url: "web", pod: func(p *corev1.Pod) {
			p.Spec.NodeName = "n0"
		}, binding: corev1.Binding{ObjectMeta: meta, Target: target}, code: 409,
			message: `Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "n0"`},
		{name: "deleted", url: "web", pod: func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: now}
		}, binding: corev1.Binding{ObjectMeta: meta, Target: target}, code: 409,
			message: `Operation cannot be fulfilled on pods/binding "web": pod web is being deleted, cannot be assigned to a host`},
		{name: "gated", url: "web", pod: func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}}
		}, binding: corev1.Binding{ObjectMeta: meta, Target: target}, code: 409,
			message: `Operation cannot be fulfilled on pods/binding "web": pod web has non-empty .spec.schedulingGates`},
		{name: "another pod of that name", url: "web",
			binding: corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "old"}, Target: target}, code: 409,
			message: `Operation cannot be fulfilled on pods "web": Precondition failed: UID in precondition: old, UID in object meta: uid-web`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
				Status: corev1.PodStatus{NominatedNodeName: "n1",
					Conditions: []corev1.PodCondition{
						{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
							Reason: corev1.PodReasonUnschedulable}}}}
			if c.pod != nil {
				c.pod(pod)
			}
			pods := registrytest.Of(t, "pods", pod)
			_, err := binding.New(registrytest.Stores{pods}, func() time.Time {
				return now
			}).Create(t.Context(), "default", c.url, &c.binding, nil)
			if c.code != 0 {
				status, ok := err.(apierrors.APIStatus)
				if !ok || status.Status().Code != c.code || status.Status().Message != c.message {
					t.Fatalf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			stored, err := pods.Get(t.Context(), "default", "web")
			if err != nil {
				t.Fatal(err)
			}
			got := stored.(*corev1.Pod)
			want := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
				LastTransitionTime: metav1.NewTime(now)}
			if got.Spec.NodeName != "n1" || len(got.Status.Conditions) != 1 || got.Status.Conditions[0] != want ||
				got.Annotations["a"] != c.binding.Annotations["a"] {
				t.Errorf("pod after binding: %+v", got)
			}
			if n := got.Status.NominatedNodeName; n != "" {
				t.Errorf("a bound pod is still nominated to %q (KEP-5278: binding clears the nomination)", n)
			}
		})
	}
}
