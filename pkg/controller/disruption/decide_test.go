package disruption

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var now = time.Unix(1_000_000, 0)

// made is a pod of a controller; "" for none.
func made(name, by string, ready bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
		Labels: map[string]string{"app": "x"}}}
	if by != "" {
		p.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: by, UID: types.UID(by), Controller: new(true)}}
	}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status}}
	return p
}

func budget(lowest, most string) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", Generation: 2}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	if lowest != "" {
		b.Spec.MinAvailable = new(intstr.Parse(lowest))
	}
	if most != "" {
		b.Spec.MaxUnavailable = new(intstr.Parse(most))
	}
	return b
}

// TestDecide: 7 pods, of which 6 are ready, as a real controller manager v1.36.3 judged them.
func TestDecide(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lowest, most               string
		scale                      int32
		desired, expected, allowed int32
	}{
		{"2", "", 7, 2, 7, 4},
		{"30%", "", 7, 3, 7, 3},
		{"100%", "", 7, 7, 7, 0},
		{"", "2", 7, 5, 7, 1},
		{"", "30%", 7, 4, 7, 2},
		{"", "20", 7, 0, 7, 6},
		{"", "0%", 7, 7, 7, 0},
		{"", "", 7, 0, 0, 0},
		{"", "1", 0, 0, 0, 0},
		{"50%", "", 0, 0, 0, 0},
		{"", "50%", 9, 4, 9, 2},
		{"7", "", 7, 7, 7, 0},
	} {
		b := budget(c.lowest, c.most)
		var pods []*corev1.Pod
		for i := range 7 {
			pods = append(pods, made(fmt.Sprint("p", i), "r", i > 0))
		}
		want := absolute(&b.Spec, len(pods))
		if relative(&b.Spec) {
			var err error
			if want, err = share(&b.Spec, c.scale); err != nil {
				t.Fatal(err)
			}
		}
		s, overdue, again := decide(b, pods, want, now)
		if s.CurrentHealthy != 6 || s.DesiredHealthy != c.desired || s.ExpectedPods != c.expected ||
			s.DisruptionsAllowed != c.allowed || s.ObservedGeneration != 2 {
			t.Errorf("%+v: %+v", c, s)
		}
		reason, is := policyv1.SufficientPodsReason, metav1.ConditionTrue
		if c.allowed == 0 {
			reason, is = policyv1.InsufficientPodsReason, metav1.ConditionFalse
		}
		if d := s.Conditions[0]; len(s.Conditions) != 1 || d.Type != policyv1.DisruptionAllowedCondition ||
			d.Reason != reason || d.Status != is || d.ObservedGeneration != 2 ||
			!d.LastTransitionTime.Equal(new(metav1.NewTime(now))) {
			t.Errorf("%+v: %+v", c, s.Conditions)
		}
		if len(overdue) > 0 || again != 0 {
			t.Errorf("%+v: %v, again after %v", c, overdue, again)
		}
	}
}

// TestEvicted: what was evicted is not counted until it is seen to go, or should have long ago.
func TestEvicted(t *testing.T) {
	t.Parallel()
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(now.Add(-ago)) }
	b := budget("1", "")
	b.Status.DisruptedPods = map[string]metav1.Time{"just": at(0), "earlier": at(time.Minute),
		"long ago": at(deletionTimeout), "going": at(time.Second), "gone": at(time.Second)}
	going := made("going", "", true)
	going.DeletionTimestamp = new(at(0))
	pods := []*corev1.Pod{made("just", "", true), made("earlier", "", true), made("long ago", "", true), going,
		made("other", "", true)}
	s, overdue, again := decide(b, pods, absolute(&b.Spec, len(pods)), now)
	if s.CurrentHealthy != 2 || s.DisruptionsAllowed != 1 || s.ExpectedPods != 5 {
		t.Errorf("%+v", s)
	}
	if _, just := s.DisruptedPods["just"]; !just || len(s.DisruptedPods) != 2 {
		t.Errorf("still to be seen going: %v", s.DisruptedPods)
	}
	if len(overdue) != 1 || overdue[0].Name != "long ago" || again != time.Minute {
		t.Errorf("overdue %v, again after %v", overdue, again)
	}
}

// TestFailed keeps what was counted before, but allows nothing.
func TestFailed(t *testing.T) {
	t.Parallel()
	s := failed(&policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DisruptionsAllowed: 3, CurrentHealthy: 5},
		errors.New("why"), now)
	c := s.Conditions[0]
	if s.DisruptionsAllowed != 0 || s.CurrentHealthy != 5 || s.ObservedGeneration != 1 ||
		c.Reason != policyv1.SyncFailedReason || c.Message != "why" || c.Status != metav1.ConditionFalse ||
		c.ObservedGeneration != 1 {
		t.Errorf("%+v", s)
	}
}

func TestFirstOfEach(t *testing.T) {
	t.Parallel()
	var names []string
	for _, p := range firstOfEach(
		[]*corev1.Pod{made("d", "r", true), made("c", "", true), made("b", "r", true), made("a", "s", true),
			made("e", "", true)}) {
		names = append(names, p.Name)
	}
	if !slices.Equal(names, []string{"a", "b", "c"}) {
		t.Error(names)
	}
}

func TestStaleIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		left   time.Duration
		marked bool
	}{
		"marked": {func(*corev1.Pod) {}, time.Minute, true},
		"long ago": {func(p *corev1.Pod) {
			p.Status.Conditions[1].LastTransitionTime = metav1.NewTime(now.Add(-time.Hour))
		}, markTimeout - time.Hour, true},
		"not marked":   {func(p *corev1.Pod) { p.Status.Conditions[1].Status = corev1.ConditionFalse }, 0, false},
		"never marked": {func(p *corev1.Pod) { p.Status.Conditions = p.Status.Conditions[:1] }, 0, false},
		"by the kubelet": {func(p *corev1.Pod) {
			p.Status.Conditions[1].Reason = corev1.PodReasonTerminationByKubelet
		}, 0, false},
		"at its end":       {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, 0, false},
		"is being deleted": {func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(now)) }, 0, false},
	} {
		p := made("p", "", true)
		p.Status.Conditions = append(p.Status.Conditions,
			corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				Reason: "EvictionByEvictionAPI", LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))})
		c.change(p)
		left, marked := staleIn(p, now)
		if left != c.left || marked != c.marked {
			t.Errorf("%s: %v, %t", name, left, marked)
		}
	}
}
