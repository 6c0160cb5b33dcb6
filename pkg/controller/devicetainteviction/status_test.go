package devicetainteviction

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// ruled is a controller that knows pods, each with a claim of its own on the device of its name, and one slice with the
// devices d0 and other.
func ruled(t *testing.T, pods ...string) (*Controller, *controllertest.Fake) {
	t.Helper()
	fake := &controllertest.Fake{}
	d := fake.Deps(t, start)
	c, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range pods {
		ns := fmt.Sprintf("ns%d", i%2)
		controllertest.Put(t, c.pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name,
			UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: "n",
			ResourceClaims: []corev1.PodResourceClaim{{Name: "x", ResourceClaimName: ptr.To(name)}}}})
		controllertest.Put(t, c.claims, &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{
				Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
					{Driver: "d", Pool: "p", Device: name}}}},
				ReservedFor: []resourcev1.ResourceClaimConsumerReference{
					{Resource: "pods", Name: name, UID: types.UID(name)}}}})
	}
	controllertest.Put(t, c.slices, slice("s", 1))
	return c, fake
}

func rule(effect resourcev1.DeviceTaintEffect, selector *resourcev1.DeviceTaintSelector,
	conditions ...metav1.Condition) *resourcev1.DeviceTaintRule {
	return &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "r", Generation: 2},
		Spec: resourcev1.DeviceTaintRuleSpec{DeviceSelector: selector,
			Taint: resourcev1.DeviceTaint{Key: "a", Effect: effect}},
		Status: resourcev1.DeviceTaintRuleStatus{Conditions: conditions}}
}

// TestRuleStatus: the conditions are those of a kube-controller-manager v1.37.2.
func TestRuleStatus(t *testing.T) {
	t.Parallel()
	const once = " if the effect was NoExecute. This information will not be updated again. " +
		"Recreate the DeviceTaintRule to trigger an update."
	all, none := &resourcev1.DeviceTaintSelector{}, resourcev1.DeviceTaintEffectNone
	said := func(generation int64, ago time.Duration, message string) metav1.Condition {
		return metav1.Condition{Type: resourcev1.DeviceTaintConditionEvictionInProgress, Status: metav1.ConditionTrue,
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(start.Add(-ago)),
			Reason: "PodsPendingEviction", Message: message}
	}
	for name, c := range map[string]struct {
		rule    *resourcev1.DeviceTaintRule
		pods    []string
		evicted int
		want    string // status, reason and message; "" if nothing is written
		again   time.Duration
	}{
		"would evict": {rule: rule(none, all), pods: []string{"a", "b", "c"}, want: "False NoEffect 2 published " +
			"devices selected. 3 allocated devices selected. 3 pods would be evicted in 2 different namespaces" + once},
		"would evict one": {rule: rule(none, &resourcev1.DeviceTaintSelector{Device: new("d0")}),
			pods: []string{"d0", "b"}, want: "False NoEffect 1 published device selected. 1 allocated device selected. " +
				"1 pod would be evicted in 1 namespace" + once},
		"selects nothing": {rule: rule(none, nil), pods: []string{"a"}, want: "False NoEffect 0 published devices " +
			"selected. 0 allocated devices selected. 0 pods would be evicted in 0 different namespaces" + once},
		"was told": {rule: rule(none, all, said(2, time.Hour, "old"))},
		"was changed": {rule: rule(none, nil, said(1, 0, "old")), want: "False NoEffect 0 published devices selected. " +
			"0 allocated devices selected. 0 pods would be evicted in 0 different namespaces" + once},
		"no scheduling": {rule: rule(resourcev1.DeviceTaintEffectNoSchedule, all), pods: []string{"a"},
			want: "False OtherEffect Eviction only happens for the NoExecute effect."},
		"evicts": {rule: rule(noExecute, all), pods: []string{"a", "b"}, again: telling,
			want: "True PodsPendingEviction 2 pods need to be evicted in 2 different namespaces."},
		"evicts one": {rule: rule(noExecute, all), pods: []string{"a"}, again: telling, evicted: 2,
			want: "True PodsPendingEviction 1 pod needs to be evicted in 1 namespace. " +
				"2 pods evicted since starting the controller."},
		"told a moment ago": {rule: rule(noExecute, all, said(2, 4*time.Second, "old")), pods: []string{"a"},
			again: telling - 4*time.Second},
		"as it was told": {rule: rule(noExecute, all, said(2, time.Minute,
			"1 pod needs to be evicted in 1 namespace.")), pods: []string{"a"}, again: telling},
		"evicted": {rule: rule(noExecute, all, said(2, time.Minute, "old")), evicted: 1,
			want: "False Completed 1 pod evicted since starting the controller."},
		"nobody to evict": {rule: rule(noExecute, all), want: "False NotStarted "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctl, fake := ruled(t, c.pods...)
			fake.Answer = nil
			controllertest.Put(t, ctl.rules, c.rule)
			for range c.evicted {
				ctl.tally.count("r")
			}
			res, err := ctl.reconcileRule(t.Context(), controller.KeyOf(c.rule))
			if err != nil || res.RequeueAfter != c.again {
				t.Errorf("%+v, %v", res, err)
			}
			if got := written(t, fake); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			// The cache does not show yet what was written: nothing is written twice.
			if _, err := ctl.reconcileRule(t.Context(), controller.KeyOf(c.rule)); err != nil ||
				written(t, fake) != c.want {
				t.Errorf("again: %q, %v", fake.Names(), err)
			}
		})
	}
}

// written is the condition that the only request applied, if there was one.
func written(t *testing.T, fake *controllertest.Fake) string {
	t.Helper()
	calls := fake.Calls()
	if len(calls) == 0 {
		return ""
	}
	var sent resourcev1.DeviceTaintRule
	if err := json.Unmarshal(calls[0].Body, &sent); err != nil || len(sent.Status.Conditions) != 1 {
		t.Fatalf("%s: %v", calls[0].Body, err)
	}
	if name := calls[0].Name(); len(calls) > 1 || name != "PATCH /apis/resource.k8s.io/v1/devicetaintrules/r/status" ||
		calls[0].Query.Get("fieldManager") != manager || calls[0].Query.Get("force") != "true" {
		t.Errorf("%v, the first %q %v", fake.Names(), name, calls[0].Query)
	}
	is := sent.Status.Conditions[0]
	if is.Type != "EvictionInProgress" || is.ObservedGeneration != 2 || !is.LastTransitionTime.Time.Equal(start) {
		t.Errorf("%+v", is)
	}
	return fmt.Sprintf("%s %s %s", is.Status, is.Reason, is.Message)
}

// TestRuleEvicts: a pod that leaves because of a rule is counted for it.
func TestRuleEvicts(t *testing.T) {
	t.Parallel()
	c, fake := ruled(t, "a")
	r, other := rule(noExecute, &resourcev1.DeviceTaintSelector{Device: new("a")}),
		rule(resourcev1.DeviceTaintEffectNoSchedule, &resourcev1.DeviceTaintSelector{})
	other.Name, other.UID = "other", "other"
	controllertest.Put(t, c.rules, r, other)
	if _, err := c.Reconcile(t.Context(), controller.Key{Namespace: "ns0", Name: "a"}); err != nil {
		t.Fatal(err)
	}
	mine, _ := c.tally.of("r")
	others, _ := c.tally.of("other")
	if mine != 1 || others != 0 || len(fake.Calls()) != 2 {
		t.Errorf("%d, %d, %q", mine, others, fake.Names())
	}
}
