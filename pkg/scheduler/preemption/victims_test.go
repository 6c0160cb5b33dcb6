package preemption

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/model"
)

// TestSplit: which victims break a budget, in the order in which they would go.
func TestSplit(t *testing.T) {
	t.Parallel()
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}
	for name, c := range map[string]struct {
		namespace string
		selector  *metav1.LabelSelector
		allowed   int32
		evicted   string
		protected []string
	}{
		"none allowed":               {"ns", app, 0, "", []string{"a", "b"}},
		"one allowed":                {"ns", app, 1, "", []string{"b"}},
		"all allowed":                {"ns", app, 2, "", nil},
		"one of them is counted":     {"ns", app, 0, "a", []string{"b"}},
		"of another namespace":       {"other", app, 0, "", nil},
		"about nothing":              {"ns", nil, 0, "", nil},
		"about all of the namespace": {"ns", &metav1.LabelSelector{}, 1, "", []string{"b", "bare"}},
	} {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "b"}}
		b.Spec.Selector, b.Status.DisruptionsAllowed = c.selector, c.allowed
		if c.evicted != "" {
			b.Status.DisruptedPods = map[string]metav1.Time{c.evicted: {}}
		}
		var pods []*model.PodInfo
		for _, n := range []string{"a", "b", "bare"} {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: n}}
			if n != "bare" {
				p.Labels = map[string]string{"app": "x"}
			}
			pods = append(pods, model.NewPodInfo(p))
		}
		protected, free := split(pods, []*policyv1.PodDisruptionBudget{b})
		var names []string
		for _, p := range protected {
			names = append(names, p.Pod.Name)
		}
		if !slices.Equal(names, c.protected) || len(protected)+len(free) != 3 {
			t.Errorf("%s: %v break it, want %v", name, names, c.protected)
		}
	}
}
