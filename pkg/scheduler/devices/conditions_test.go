package devices

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAwait: a pod is bound when the binding conditions of its devices are true, and not if one fails or time is over;
// the claim is given back then.
func TestAwait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		conditions map[string]metav1.ConditionStatus // set after a minute; nil: none ever
		after      time.Duration
		err        string
	}{
		{"ready", map[string]metav1.ConditionStatus{"Attached": metav1.ConditionTrue, "Set": metav1.ConditionTrue},
			time.Minute, ""},
		{"half ready", map[string]metav1.ConditionStatus{"Attached": metav1.ConditionTrue,
			"Set": metav1.ConditionFalse}, 5 * time.Minute, "deadline exceeded"},
		{"failed", map[string]metav1.ConditionStatus{"Attached": metav1.ConditionTrue, "Broken": metav1.ConditionTrue},
			time.Minute, "binding failed: device d/s/d0: Broken"},
		{"never", nil, 5 * time.Minute, "deadline exceeded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := claim("a")
				api := &fake{claim: a}
				d := New(api, time.Now)
				d.ClassChanged(nil, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}})
				s := slice("s", "n", "d0")
				s.Spec.Devices[0].BindingConditions, s.Spec.Devices[0].BindingFailureConditions = []string{"Attached",
					"Set"}, []string{"Broken"}
				d.SliceChanged(nil, s)
				d.ClaimChanged(nil, a)
				p, began := pod("p", "a"), time.Now()
				choice, st := d.Reserve(p, node("n"), time.Second)
				if !st.IsSuccess() || !choice.Lingers() {
					t.Fatalf("%v, lingers %v", st.AsError(), choice != nil && choice.Lingers())
				}
				if err := d.Bind(t.Context(), p.Pod, choice); err != nil {
					t.Fatal(err)
				}
				if c.conditions != nil {
					time.AfterFunc(time.Minute, func() {
						old := api.claim
						api.claim = old.DeepCopy()
						api.claim.ResourceVersion += "0"
						r := old.Status.Allocation.Devices.Results[0]
						status := resourcev1.AllocatedDeviceStatus{Driver: r.Driver, Pool: r.Pool, Device: r.Device}
						for t, s := range c.conditions {
							status.Conditions = append(status.Conditions, metav1.Condition{Type: t, Status: s})
						}
						api.claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{status}
						d.ClaimChanged(old, api.claim)
					})
				}
				err := d.Await(t.Context(), choice, 5*time.Minute)
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				if took := time.Since(began); took != c.after {
					t.Errorf("after %s, want %s", took, c.after)
				}
				if err := d.Unreserve(t.Context(), p.Pod, choice); err != nil {
					t.Fatal(err)
				}
				if kept := api.claim.Status.Allocation != nil; kept != (c.err == "") {
					t.Errorf("the claim keeps its devices: %v", kept)
				}
			})
		})
	}
}
