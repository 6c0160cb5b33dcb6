package eviction_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/registry/eviction"
	"bonsai/pkg/apiserver/registry/registrytest"
)

func running(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": "x"}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
}

func budget(name string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:   policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, DesiredHealthy: 1, CurrentHealthy: 1}}
}

func evict(t *testing.T, s registrytest.Stores, e *policyv1.Eviction) error {
	t.Helper()
	_, err := eviction.New(s, func() time.Time { return time.Unix(1, 0) }).Create(t.Context(), "default", "p", e, nil)
	return err
}

func of(name string) *policyv1.Eviction {
	return &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestWithoutBudgets(t *testing.T) {
	t.Parallel()
	pods := registrytest.Of(running("p"))
	s := registrytest.Stores{"pods": pods}
	if err := evict(t, s, of("q")); !apierrors.IsBadRequest(err) {
		t.Errorf("another name: %v", err)
	}
	wrong := of("p")
	uid := types.UID("x")
	wrong.DeleteOptions = &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	if err := evict(t, s, wrong); !apierrors.IsConflict(err) {
		t.Errorf("another UID: %v", err)
	}
	grace := of("p")
	grace.DeleteOptions = &metav1.DeleteOptions{GracePeriodSeconds: new(int64(7))}
	if err := evict(t, s, grace); err != nil {
		t.Fatal(err)
	}
	if len(pods.Objects) != 0 || *pods.Deleted[0].GracePeriodSeconds != 7 {
		t.Errorf("pods left: %d, options %+v", len(pods.Objects), pods.Deleted[0])
	}
	if err := evict(t, s, of("p")); !apierrors.IsNotFound(err) {
		t.Errorf("gone: %v", err)
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pod     func(*corev1.Pod)
		budgets *registrytest.Store
		ok      func(error) bool
	}{
		"allowed":       {budgets: registrytest.Of(budget("b", 1))},
		"spent":         {budgets: registrytest.Of(budget("b", 0)), ok: apierrors.IsTooManyRequests},
		"two budgets":   {budgets: registrytest.Of(budget("b", 1), budget("c", 1)), ok: apierrors.IsInternalError},
		"finished":      {pod: func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, budgets: registrytest.Of(budget("b", 0))},
		"not ready":     {pod: func(p *corev1.Pod) { p.Status.Conditions = nil }, budgets: registrytest.Of(budget("b", 0))},
		"of others":     {pod: func(p *corev1.Pod) { p.Labels = nil }, budgets: registrytest.Of(budget("b", 0))},
		"not seen yet":  {budgets: registrytest.Of(func() *policyv1.PodDisruptionBudget { b := budget("b", 1); b.Generation = 2; return b }()), ok: apierrors.IsTooManyRequests},
		"no budget yet": {budgets: registrytest.Of()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := running("p")
			if c.pod != nil {
				c.pod(pod)
			}
			pods := registrytest.Of(pod)
			err := evict(t, registrytest.Stores{"pods": pods, "poddisruptionbudgets.policy": c.budgets}, of("p"))
			if c.ok == nil && (err != nil || len(pods.Objects) != 0) || c.ok != nil && (!c.ok(err) || len(pods.Objects) != 1) {
				t.Errorf("error %v, %d pods left", err, len(pods.Objects))
			}
		})
	}
	b := registrytest.Of(budget("b", 1))
	if err := evict(t, registrytest.Stores{"pods": registrytest.Of(running("p")), "poddisruptionbudgets.policy": b}, of("p")); err != nil {
		t.Fatal(err)
	}
	st := b.Objects[0].(*policyv1.PodDisruptionBudget).Status
	if _, ok := st.DisruptedPods["p"]; !ok || st.DisruptionsAllowed != 0 {
		t.Errorf("budget after: %+v", st)
	}
}

// TestMark: the pod says why it goes; a resourceVersion that the client asks for is that from before.
func TestMark(t *testing.T) {
	t.Parallel()
	pod := running("p")
	pod.ResourceVersion = "4"
	pod.Finalizers = []string{"x/y"}
	pods := registrytest.Of(pod)
	s := registrytest.Stores{"pods": pods}
	dry := of("p")
	dry.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{"All"}}
	if err := evict(t, s, dry); err != nil || len(pods.Subresources) != 0 {
		t.Errorf("dry run: %v, wrote %v", err, pods.Subresources)
	}
	stale, fresh := of("p"), of("p")
	stale.DeleteOptions = &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("3")}}
	if err := evict(t, s, stale); !apierrors.IsConflict(err) {
		t.Errorf("another version: %v", err)
	}
	fresh.DeleteOptions = &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("4")}}
	if err := evict(t, s, fresh); err != nil {
		t.Fatal(err)
	}
	if got := *pods.Deleted[len(pods.Deleted)-1].Preconditions.ResourceVersion; got != "5" {
		t.Errorf("deleted at version %s", got)
	}
	if len(pods.Subresources) != 1 || pods.Subresources[0] != "status" {
		t.Errorf("wrote %v", pods.Subresources)
	}
}

func TestOptionsRefused(t *testing.T) {
	t.Parallel()
	s := registrytest.Stores{"pods": registrytest.Of(running("p"))}
	wrong := of("p")
	wrong.DeleteOptions = &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletionPropagation("Foo"))}
	if err := evict(t, s, wrong); !apierrors.IsInvalid(err) {
		t.Errorf("a policy that is none: %v", err)
	}
}
