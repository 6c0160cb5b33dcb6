package ephemeralvolume

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "plain"},
		{Name: "v", VolumeSource: corev1.VolumeSource{
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
				Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("s")},
			}}}}}
	change(p)
	return p
}

// TestReconcile: one claim for each volume, owned by the pod; what stands in its place stays, and is told of.
func TestReconcile(t *testing.T) {
	t.Parallel()
	plain := func(*corev1.Pod) {}
	owned := claimFor(pod(plain), &pod(plain).Spec.Volumes[1])
	foreign := owned.DeepCopy()
	foreign.OwnerReferences = nil
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		claim   *corev1.PersistentVolumeClaim
		refuse  bool
		creates bool
		event   string
	}{
		"missing": {pod: pod(plain), creates: true},
		"there":   {pod: pod(plain), claim: owned},
		"another's": {pod: pod(plain), claim: foreign,
			event: `Warning EphemeralVolumeFailed ephemeral volume v: PVC "ns/p-v" was not created for pod "ns/p" (pod is not owner)`},
		"refused": {pod: pod(plain), refuse: true, creates: true,
			event: "Warning EphemeralVolumeFailed ephemeral volume v: create PVC p-v: "},
		"leaving":        {pod: pod(func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.Unix(1, 0)) })},
		"at its end":     {pod: pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })},
		"no such volume": {pod: pod(func(p *corev1.Pod) { p.Spec.Volumes = p.Spec.Volumes[:1] })},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				if c.refuse {
					return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "p-v",
						nil)
				}
				return call.Object, nil
			}}
			ctl, err := New(fake.Deps(t, time.Time{}))
			if err != nil {
				t.Fatal(err)
			}
			controllertest.Put(t, ctl.pods, c.pod)
			if c.claim != nil {
				controllertest.Put(t, ctl.claims, c.claim)
			}
			if _, err := ctl.Reconcile(t.Context(),
				controller.Key{Namespace: "ns", Name: "p"}); (err != nil) != (c.event != "") {
				t.Error(err)
			}
			if got := slices.Contains(fake.Names(),
				"POST /api/v1/namespaces/ns/persistentvolumeclaims"); got != c.creates {
				t.Errorf("creates: %v, want %v", got, c.creates)
			}
			for _, call := range fake.Calls() {
				got := call.Object.(*corev1.PersistentVolumeClaim)
				if got.Name != "p-v" || got.Labels["a"] != "b" || *got.Spec.StorageClassName != "s" ||
					!metav1.IsControlledBy(got, c.pod) || !*got.OwnerReferences[0].BlockOwnerDeletion {
					t.Errorf("%+v", got)
				}
			}
			select {
			case e := <-ctl.Events.(*record.FakeRecorder).Events:
				if c.event == "" || !strings.HasPrefix(e, c.event) {
					t.Errorf("event %q, want %q", e, c.event)
				}
			default:
				if c.event != "" {
					t.Error("no event")
				}
			}
		})
	}
}
