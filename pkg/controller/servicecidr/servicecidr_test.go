package servicecidr

import (
	"slices"
	"testing"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

var start = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func cidr(name string, prefixes ...string) *networkingv1.ServiceCIDR {
	return &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Finalizers: []string{"x/y", finalizer}},
		Spec:       networkingv1.ServiceCIDRSpec{CIDRs: prefixes}}
}

func ending(c *networkingv1.ServiceCIDR, ago time.Duration) *networkingv1.ServiceCIDR {
	c.DeletionTimestamp = &metav1.Time{Time: start.Add(-ago)}
	return c
}

func TestDecide(t *testing.T) {
	t.Parallel()
	fresh := cidr("c", "10.0.0.0/24")
	fresh.Finalizers = []string{"x/y"}
	ready := cidr("c", "10.0.0.0/24")
	ready.Status.Conditions = []metav1.Condition{
		{Type: "Ready", Status: "True", Message: "Kubernetes Service CIDR is ready",
			LastTransitionTime: metav1.NewTime(start)}}
	for name, c := range map[string]struct {
		of         *networkingv1.ServiceCIDR
		others     []*networkingv1.ServiceCIDR
		held       []string
		finalizers []string // nil: not written
		condition  string   // status and reason; "" not written
		after      time.Duration
	}{
		"new":   {of: fresh, finalizers: []string{"x/y", finalizer}, condition: "True "},
		"ready": {of: ready, held: []string{"10.0.0.1"}},
		"in use": {of: ending(cidr("c", "10.0.0.0/24"), time.Hour),
			held: []string{"10.1.0.1", "10.0.0.7"}, condition: "False Terminating"},
		"in use by the other family": {of: ending(cidr("c", "10.0.0.0/24", "fd00::/64"), time.Hour),
			held: []string{"fd00::7"}, condition: "False Terminating"},
		"unused, just deleted": {of: ending(cidr("c", "10.0.0.0/24"), 4*time.Second),
			held: []string{"10.0.1.1", "no address"}, after: 6 * time.Second},
		"unused": {of: ending(cidr("c", "10.0.0.0/24"), 10*time.Second),
			finalizers: []string{"x/y"}},
		"another range has its addresses": {of: ending(cidr("c", "10.0.0.0/24"), time.Hour),
			others: []*networkingv1.ServiceCIDR{cidr("d", "10.0.0.0/16")}, held: []string{"10.0.0.7"},
			finalizers: []string{"x/y"}},
		"another range has some": {of: ending(cidr("c", "10.0.0.0/24"), time.Hour),
			others: []*networkingv1.ServiceCIDR{cidr("d", "10.0.0.0/28")}, held: []string{"10.0.0.7", "10.0.0.17"},
			condition: "False Terminating"},
		"another range that is going, too": {of: ending(cidr("c", "10.0.0.0/24"), time.Hour),
			others: []*networkingv1.ServiceCIDR{ending(cidr("d", "10.0.0.0/16"), time.Hour)},
			held:   []string{"10.0.0.7"}, condition: "False Terminating"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := decide(c.of, append(c.others, c.of), c.held, start)
			var finalizers []string
			if a.finalizers != nil {
				finalizers = *a.finalizers
			}
			if !slices.Equal(finalizers, c.finalizers) || (a.finalizers == nil) != (c.finalizers == nil) {
				t.Errorf("finalizers %q, want %q", finalizers, c.finalizers)
			}
			condition := ""
			if r := meta.FindStatusCondition(a.conditions, "Ready"); r != nil {
				condition = string(r.Status) + " " + r.Reason
			}
			if condition != c.condition || a.after != c.after {
				t.Errorf("condition %q, want %q; again after %s, want %s", condition, c.condition, a.after, c.after)
			}
		})
	}
}

// TestReconcile: what is decided is written, and nothing else.
func TestReconcile(t *testing.T) {
	t.Parallel()
	fake := &controllertest.Fake{}
	ctl, err := New(fake.Deps(t, start))
	if err != nil {
		t.Fatal(err)
	}
	used := ending(cidr("used", "10.0.0.0/24"), time.Hour)
	controllertest.Put(t, ctl.cidrs, used)
	controllertest.Put(t, ctl.cidrs, ending(cidr("unused", "10.9.0.0/24"), time.Hour))
	controllertest.Put(t, ctl.addresses, &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: "10.0.0.1"}})
	for _, name := range []string{"used", "unused", "gone"} {
		if _, err := ctl.Reconcile(t.Context(), controller.Key{Name: name}); err != nil {
			t.Error(err)
		}
	}
	want := []string{"PUT /apis/networking.k8s.io/v1/servicecidrs/used/status",
		"PUT /apis/networking.k8s.io/v1/servicecidrs/unused"}
	if got := fake.Names(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
