package disruption

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/pkg/controller"
)

// expectation is how many pods there should be, and how many of them healthy.
type expectation struct{ pods, healthy int32 }

// relative reports whether a budget says how many pods it needs in relation to how many there should be.
func relative(s *policyv1.PodDisruptionBudgetSpec) bool {
	return s.MaxUnavailable != nil || s.MinAvailable != nil && s.MinAvailable.Type == intstr.String
}

// absolute is what a budget needs that is not relative, with so many pods there.
func absolute(s *policyv1.PodDisruptionBudgetSpec, pods int) expectation {
	if s.MinAvailable == nil {
		return expectation{}
	}
	return expectation{int32(pods), s.MinAvailable.IntVal}
}

// share is what a budget needs of so many pods that there should be. Shares are rounded up.
func share(s *policyv1.PodDisruptionBudgetSpec, pods int32) (expectation, error) {
	if s.MaxUnavailable != nil {
		n, err := intstr.GetScaledValueFromIntOrPercent(s.MaxUnavailable, int(pods), true)
		return expectation{pods, max(0, pods-int32(n))}, err
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(s.MinAvailable, int(pods), true)
	return expectation{pods, int32(n)}, err
}

// firstOfEach returns one pod of each controller, and one without, in the order of names.
func firstOfEach(pods []*corev1.Pod) []*corev1.Pod {
	first := map[types.UID]*corev1.Pod{}
	for _, p := range pods {
		var of types.UID
		if ref := metav1.GetControllerOfNoCopy(p); ref != nil {
			of = ref.UID
		}
		if known := first[of]; known == nil || p.Name < known.Name {
			first[of] = p
		}
	}
	return slices.SortedFunc(maps.Values(first), func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
}

// decide returns the status of a budget, the pods that were evicted long ago and are still there, and when there may be
// more of those. A pod that was evicted counts as lost from then on, although it is seen to be there: the eviction has
// spent it already.
//
// It is pure. Rules: https://kubernetes.io/docs/tasks/run-application/configure-pdb/.
func decide(b *policyv1.PodDisruptionBudget, pods []*corev1.Pod, want expectation,
	now time.Time) (policyv1.PodDisruptionBudgetStatus, []*corev1.Pod, time.Duration) {
	evicted, overdue, again := pending(b.Status.DisruptedPods, pods, now)
	var healthy int32
	for _, p := range pods {
		if _, gone := evicted[p.Name]; !gone && p.DeletionTimestamp == nil && controller.PodReady(p) {
			healthy++
		}
	}
	allowed := max(0, healthy-want.healthy)
	if want.pods <= 0 {
		allowed = 0
	}
	status := *b.Status.DeepCopy()
	status.CurrentHealthy, status.DesiredHealthy, status.ExpectedPods = healthy, want.healthy, want.pods
	status.DisruptionsAllowed, status.DisruptedPods, status.ObservedGeneration = allowed, evicted, b.Generation
	c := metav1.Condition{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionTrue,
		Reason: policyv1.SufficientPodsReason}
	if allowed == 0 {
		c.Status, c.Reason = metav1.ConditionFalse, policyv1.InsufficientPodsReason
	}
	setCondition(&status, c, now)
	return status, overdue, again
}

// failed is the status of a budget whose pods cannot be counted: it allows nothing.
//
// Refusing is the safe side: an eviction that waits harms nobody.
func failed(s *policyv1.PodDisruptionBudgetStatus, why error, now time.Time) policyv1.PodDisruptionBudgetStatus {
	status := *s.DeepCopy()
	status.DisruptionsAllowed = 0
	setCondition(&status, metav1.Condition{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
		Reason: policyv1.SyncFailedReason, Message: why.Error()}, now)
	return status
}

func setCondition(s *policyv1.PodDisruptionBudgetStatus, c metav1.Condition, now time.Time) {
	c.ObservedGeneration, c.LastTransitionTime = s.ObservedGeneration, metav1.NewTime(now)
	meta.SetStatusCondition(&s.Conditions, c)
}

// pending returns those of the evicted pods that are still to be seen deleted, those that are overdue, and after how
// long the next will be.
func pending(evicted map[string]metav1.Time, pods []*corev1.Pod, now time.Time) (still map[string]metav1.Time,
	overdue []*corev1.Pod, again time.Duration) {
	for _, p := range pods {
		at, ok := evicted[p.Name]
		if !ok || p.DeletionTimestamp != nil {
			continue
		}
		left := deletionTimeout - now.Sub(at.Time)
		if left <= 0 {
			overdue = append(overdue, p)
			continue
		}
		if still == nil {
			still = map[string]metav1.Time{}
		}
		still[p.Name] = at
		if again == 0 || left < again {
			again = left
		}
	}
	return still, overdue, again
}
