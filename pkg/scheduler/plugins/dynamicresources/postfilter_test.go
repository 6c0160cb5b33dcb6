package dynamicresources

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// TestNothingToGiveBack: for a pod without claims, and for one whose claims have no devices, the plug-in adds nothing
// to the message that a user reads. Nor does a kube-scheduler v1.37.2.
func TestNothingToGiveBack(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]corev1.PodResourceClaim{
		"no claims":  nil,
		"no devices": {{Name: "c", ResourceClaimName: new("c")}},
	} {
		known := devices.New(nil, time.Now)
		known.ClassChanged(nil, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "big"}})
		known.ClaimChanged(nil, claim([]string{"big"}))
		pod := model.NewPodInfo(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p"},
			Spec: corev1.PodSpec{ResourceClaims: list}})
		plugin, state := &Plugin{FilterTimeout: time.Minute, Devices: known}, framework.NewCycleState()
		if _, st := plugin.PreFilter(state, pod, nil); !st.IsSuccess() && !st.IsSkip() {
			t.Fatalf("%s: %+v", name, st)
		}
		node, st := plugin.PostFilter(t.Context(), nil, state, pod, &framework.Diagnosis{})
		if node != "" || !st.IsRejected() || st.Message() != "" {
			t.Errorf("%s: node %q, %+v", name, node, st)
		}
	}
}
