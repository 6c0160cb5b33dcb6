package namespace

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// setConditions says in the five documented conditions how far the deletion is; True is the bad side of each.
func setConditions(st *corev1.NamespaceStatus, f findings, now time.Time) {
	discovery := message(f.discovery != nil, "DiscoveryFailed",
		fmt.Sprintf("Discovery failed for some groups, %d failing: %v", failing(f.discovery), f.discovery),
		"ResourcesDiscovered", "All resources successfully discovered")
	deletion := message(len(f.deletion) > 0, "ContentDeletionFailed",
		fmt.Sprintf("Failed to delete all resource types, %d remaining: %v", len(f.deletion),
			errors.Join(sorted(f.deletion)...)),
		"ContentDeleted", "All content successfully deleted, may be waiting on finalization")
	content := message(len(f.remaining) > 0, "SomeResourcesRemain",
		"Some resources are remaining: "+remaining(f.remaining),
		"ContentRemoved", "All content successfully removed")
	finalizers := message(len(f.finalizers) > 0, "SomeFinalizersRemain",
		"Some content in the namespace has finalizers remaining: "+waiting(f.finalizers),
		"ContentHasNoFinalizers", "All content-preserving finalizers finished")
	for _, c := range []struct {
		t corev1.NamespaceConditionType
		m outcome
	}{
		{corev1.NamespaceDeletionDiscoveryFailure, discovery},
		{corev1.NamespaceDeletionGVParsingFailure,
			outcome{reason: "ParsedGroupVersions", text: "All legacy kube types successfully parsed"}},
		{corev1.NamespaceDeletionContentFailure, deletion},
		{corev1.NamespaceContentRemaining, content},
		{corev1.NamespaceFinalizersRemaining, finalizers},
	} {
		set(st, c.t, c.m, now)
	}
}

type outcome struct {
	bad          bool
	reason, text string
}

func message(bad bool, badReason, badText, goodReason, goodText string) outcome {
	if bad {
		return outcome{true, badReason, badText}
	}
	return outcome{false, goodReason, goodText}
}

// set writes a condition unless it says the same already.
func set(st *corev1.NamespaceStatus, t corev1.NamespaceConditionType, m outcome, now time.Time) {
	c := corev1.NamespaceCondition{Type: t, Status: corev1.ConditionFalse, Reason: m.reason, Message: m.text,
		LastTransitionTime: metav1.NewTime(now)}
	if m.bad {
		c.Status = corev1.ConditionTrue
	}
	for i, old := range st.Conditions {
		if old.Type != t {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		st.Conditions[i] = c
		return
	}
	st.Conditions = append(st.Conditions, c)
}

// failing counts the errors that err joins.
func failing(err error) int {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return len(all.Unwrap())
	}
	if err == nil {
		return 0
	}
	return 1
}

func sorted(errs []error) []error {
	return slices.SortedFunc(slices.Values(errs), func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
}

// remaining lists "pods. has 1 resource instances" for each resource, in order.
func remaining(left map[schema.GroupResource]int) string {
	var parts []string
	for r, n := range left {
		parts = append(parts, fmt.Sprintf("%s.%s has %d resource instances", r.Resource, r.Group, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// waiting lists "example.com/hold in 2 resource instances" for each finalizer, in order.
func waiting(finalizers map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(finalizers)) {
		parts = append(parts, fmt.Sprintf("%s in %d resource instances", name, finalizers[name]))
	}
	return strings.Join(parts, ", ")
}
