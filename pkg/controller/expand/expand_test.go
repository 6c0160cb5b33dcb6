package expand

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// TestReconcile: the event is that of a kube-controller-manager v1.36.3.
func TestReconcile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asks, has string
		phase     corev1.PersistentVolumeClaimPhase
		of        string
		told      bool
	}{
		"asks for more":           {"2Gi", "1Gi", corev1.ClaimBound, "c", true},
		"has what it asks for":    {"1Gi", "1Gi", corev1.ClaimBound, "c", false},
		"has more":                {"1Gi", "2Gi", corev1.ClaimBound, "c", false},
		"is not bound":            {"2Gi", "0", corev1.ClaimPending, "c", false},
		"its volume is another's": {"2Gi", "1Gi", corev1.ClaimBound, "d", false},
	} {
		ctl, err := New((&controllertest.Fake{}).Deps(t, time.Time{}))
		if err != nil {
			t.Fatal(err)
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
		claim.Spec.VolumeName, claim.Status.Phase = "v", c.phase
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(c.asks)}
		claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(c.has)}
		v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "ns", Name: c.of}
		controllertest.Put(t, ctl.claims, claim)
		controllertest.Put(t, ctl.volumes, v)
		if _, err := ctl.Reconcile(t.Context(), controller.KeyOf(claim)); err != nil {
			t.Error(err)
		}
		got := ""
		select {
		case got = <-ctl.Events.(*record.FakeRecorder).Events:
		default:
		}
		if want := "Normal ExternalExpanding waiting for an external controller to expand this PVC"; (got == want) !=
			c.told {
			t.Errorf("%s: %q", name, got)
		}
	}
}
