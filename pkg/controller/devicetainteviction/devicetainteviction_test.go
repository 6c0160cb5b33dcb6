package devicetainteviction

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

var (
	noExecute = resourcev1.DeviceTaintEffectNoExecute
	start     = time.Unix(1000, 0)
)

func taint(key string, effect resourcev1.DeviceTaintEffect) resourcev1.DeviceTaint {
	return resourcev1.DeviceTaint{Key: key, Value: "v", Effect: effect, TimeAdded: &metav1.Time{Time: start}}
}

func exists(key string, seconds *int64) resourcev1.DeviceToleration {
	return resourcev1.DeviceToleration{Key: key, Operator: resourcev1.DeviceTolerationOpExists,
		TolerationSeconds: seconds}
}

// TestDecide follows the documentation of device taints and tolerations.
func TestDecide(t *testing.T) {
	t.Parallel()
	after := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	untimed := taint("a", noExecute)
	untimed.TimeAdded = nil
	for name, c := range map[string]struct {
		taints      []resourcev1.DeviceTaint
		tolerations []resourcev1.DeviceToleration
		at          time.Time
		ever        bool
	}{
		"no taint": {},
		"not tolerated": {taints: []resourcev1.DeviceTaint{taint("a", noExecute)}, at: start,
			ever: true},
		"since ever": {taints: []resourcev1.DeviceTaint{untimed}, ever: true},
		"keeps away only": {
			taints: []resourcev1.DeviceTaint{taint("a", resourcev1.DeviceTaintEffectNoSchedule),
				taint("b", resourcev1.DeviceTaintEffectNone)}},
		"for ever": {taints: []resourcev1.DeviceTaint{taint("a", noExecute)},
			tolerations: []resourcev1.DeviceToleration{exists("a", nil)}},
		"for a while": {[]resourcev1.DeviceTaint{taint("a", noExecute)},
			[]resourcev1.DeviceToleration{exists("a", ptr.To[int64](30))}, after(30), true},
		"the first one counts": {[]resourcev1.DeviceTaint{taint("a", noExecute)},
			[]resourcev1.DeviceToleration{exists("", ptr.To[int64](30)), exists("a", nil)}, after(30), true},
		"the taint that is over first": {[]resourcev1.DeviceTaint{taint("a", noExecute), taint("b", noExecute)},
			[]resourcev1.DeviceToleration{exists("a", ptr.To[int64](60)), exists("b", ptr.To[int64](20))}, after(20),
			true},
		"another value": {[]resourcev1.DeviceTaint{taint("a", noExecute)},
			[]resourcev1.DeviceToleration{{Key: "a", Value: "w", Operator: resourcev1.DeviceTolerationOpEqual}}, start,
			true},
		"another effect": {[]resourcev1.DeviceTaint{taint("a", noExecute)},
			[]resourcev1.DeviceToleration{
				{Key: "a", Operator: resourcev1.DeviceTolerationOpExists,
					Effect: resourcev1.DeviceTaintEffectNoSchedule}}, start, true},
	} {
		if at, ever := decide(c.taints, c.tolerations); !at.Equal(c.at) || ever != c.ever {
			t.Errorf("%s: %v %v, want %v %v", name, at, ever, c.at, c.ever)
		}
	}
}

// TestConcerns: a pod is looked at when it comes to its node, which is after its claims were reserved for it.
func TestConcerns(t *testing.T) {
	t.Parallel()
	pod := func(node string, claims ...string) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node}}
		for i := range claims {
			p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses,
				corev1.PodResourceClaimStatus{Name: "x", ResourceClaimName: &claims[i]})
		}
		return p
	}
	for name, c := range map[string]struct {
		old, p *corev1.Pod
		want   bool
	}{
		"new, on a node":      {nil, pod("n", "c"), true},
		"new, without a node": {nil, pod("", "c"), false},
		"new, without claims": {nil, pod("n"), false},
		"comes to its node":   {pod("", "c"), pod("n", "c"), true},
		"is told of a claim":  {pod("n"), pod("n", "c"), true},
		"of another one":      {pod("n", "c"), pod("n", "d"), true},
		"something else":      {pod("n", "c"), pod("n", "c"), false},
	} {
		if got := concerns(c.old, c.p); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func slice(name string, generation int64, taints ...resourcev1.DeviceTaint) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec = resourcev1.ResourceSliceSpec{Driver: "d", Pool: resourcev1.ResourcePool{Name: "p", Generation: generation},
		Devices: []resourcev1.Device{{Name: "other"}, {Name: "d0", Taints: taints}}}
	return s
}

// TestReconcile: the pod that a claim with the device is reserved for goes, with upstream's event and condition; the
// newest generation of the pool counts.
func TestReconcile(t *testing.T) {
	t.Parallel()
	bad := taint("a", noExecute)
	for name, c := range map[string]struct {
		slices      []*resourcev1.ResourceSlice
		tolerations []resourcev1.DeviceToleration
		change      func(p *corev1.Pod, claim *resourcev1.ResourceClaim)
		evicted     bool
		wait        time.Duration
	}{
		"tainted":      {slices: []*resourcev1.ResourceSlice{slice("s", 1, bad)}, evicted: true},
		"not tainted":  {slices: []*resourcev1.ResourceSlice{slice("s", 1)}},
		"healed":       {slices: []*resourcev1.ResourceSlice{slice("old", 1, bad), slice("new", 2)}},
		"tainted anew": {slices: []*resourcev1.ResourceSlice{slice("old", 1), slice("new", 2, bad)}, evicted: true},
		"for a while": {slices: []*resourcev1.ResourceSlice{slice("s", 1, bad)},
			tolerations: []resourcev1.DeviceToleration{exists("a", ptr.To[int64](30))}, wait: 20 * time.Second},
		"no longer": {slices: []*resourcev1.ResourceSlice{slice("s", 1, bad)},
			tolerations: []resourcev1.DeviceToleration{exists("a", ptr.To[int64](5))}, evicted: true},
		"not reserved": {slices: []*resourcev1.ResourceSlice{slice("s", 1, bad)},
			change: func(_ *corev1.Pod, claim *resourcev1.ResourceClaim) {
				claim.Status.ReservedFor[0].UID = "other"
			}},
		"without a node": {slices: []*resourcev1.ResourceSlice{slice("s", 1, bad)},
			change: func(p *corev1.Pod, _ *resourcev1.ResourceClaim) {
				p.Spec.NodeName = ""
			}},
		"at its end": {slices: []*resourcev1.ResourceSlice{slice("s", 1, bad)},
			change: func(p *corev1.Pod, _ *resourcev1.ResourceClaim) {
				p.Status.Phase = corev1.PodFailed
			}},
		"of another claim": {slices: []*resourcev1.ResourceSlice{slice("s", 1, bad)},
			change: func(_ *corev1.Pod, claim *resourcev1.ResourceClaim) {
				claim.Status.Allocation.Devices.Results[0].Device = "other"
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"},
				Spec: corev1.PodSpec{NodeName: "n",
					ResourceClaims: []corev1.PodResourceClaim{{Name: "x", ResourceClaimName: ptr.To("c")}}}}
			claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"},
				Status: resourcev1.ResourceClaimStatus{
					Allocation: &resourcev1.AllocationResult{
						Devices: resourcev1.DeviceAllocationResult{
							Results: []resourcev1.DeviceRequestAllocationResult{
								{Driver: "d", Pool: "p", Device: "d0", Tolerations: c.tolerations}}}},
					ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "u"}},
				}}
			if c.change != nil {
				c.change(p, claim)
			}
			fake := &controllertest.Fake{}
			ctl, err := New(fake.Deps(t, start.Add(10*time.Second)))
			if err != nil {
				t.Fatal(err)
			}
			controllertest.Put(t, ctl.pods, p)
			controllertest.Put(t, ctl.claims, claim)
			controllertest.Put(t, ctl.slices, c.slices...)
			res, err := ctl.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "p"})
			if err != nil || res.RequeueAfter != c.wait {
				t.Errorf("%+v, %v", res, err)
			}
			want := []string(nil)
			if c.evicted {
				want = []string{"PATCH /api/v1/namespaces/ns/pods/p/status", "DELETE /api/v1/namespaces/ns/pods/p"}
			}
			if got := fake.Names(); !slices.Equal(got, want) {
				t.Fatalf("%q, want %q", got, want)
			}
			if !c.evicted {
				return
			}
			if e := <-ctl.Events.(*record.FakeRecorder).Events; e !=
				"Normal DeviceTaintManagerEviction Marking for deletion" {
				t.Errorf("event %q", e)
			}
			if body := string(fake.Calls()[0].Body); !strings.Contains(body,
				`"reason":"DeletionByDeviceTaintManager","message":"Device Taint manager: deleting due to NoExecute taint"`) {
				t.Error(body)
			}
		})
	}
}
