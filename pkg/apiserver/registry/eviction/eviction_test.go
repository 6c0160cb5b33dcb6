package eviction_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/registry/eviction"
	"bonsai/pkg/apiserver/registry/registrytest"
)

func running(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default",
		Labels: map[string]string{"app": "x"}},
		Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
}

func budget(name string, allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, DesiredHealthy: 1, CurrentHealthy: 1}}
}

func budgets(t *testing.T, objs ...runtime.Object) *registry.Generic {
	t.Helper()
	return registrytest.Of(t, "poddisruptionbudgets.policy", objs...)
}

func evict(t *testing.T, s registrytest.Stores, e *policyv1.Eviction) error {
	t.Helper()
	_, err := eviction.New(s, func() time.Time { return time.Unix(1, 0) }).Create(t.Context(), "default", "p", e, nil)
	return err
}

// stored is the pod p as it is now, nil if it is gone.
func stored(t *testing.T, pods *registry.Generic) *corev1.Pod {
	t.Helper()
	p, err := pods.Get(t.Context(), "default", "p")
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.(*corev1.Pod)
}

func of(name string) *policyv1.Eviction {
	return &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestWithoutBudgets(t *testing.T) {
	t.Parallel()
	pods := registrytest.Of(t, "pods", running("p"))
	s := registrytest.Stores{pods}
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
	if p := stored(t, pods); p == nil || p.DeletionGracePeriodSeconds == nil || *p.DeletionGracePeriodSeconds != 7 {
		t.Errorf("the pod that goes: %+v", p)
	}
	now := of("p")
	now.DeleteOptions = &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	if err := evict(t, s, now); err != nil || stored(t, pods) != nil {
		t.Errorf("at once: %v, %+v", err, stored(t, pods))
	}
	if err := evict(t, s, of("p")); !apierrors.IsNotFound(err) {
		t.Errorf("gone: %v", err)
	}
}

// TestUnreadable: an eviction cannot ask for the removal of objects that nobody can read, which needs a permission of
// its own. The answer is that of a kube-apiserver v1.37.2.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	pods := registrytest.Of(t, "pods", running("p"))
	e := of("p")
	e.DeleteOptions = &metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: new(true)}
	const want = `Eviction.policy "p" is invalid: deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: can not be set for pod eviction, try after removing the option`
	if err := evict(t, registrytest.Stores{pods}, e); !apierrors.IsInvalid(err) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if p := stored(t, pods); p == nil || len(p.Status.Conditions) != 1 {
		t.Errorf("the pod afterwards: %+v", p)
	}
	e.DeleteOptions.IgnoreStoreReadErrorWithClusterBreakingPotential = new(false)
	if err := evict(t, registrytest.Stores{pods}, e); err != nil {
		t.Errorf("without the option: %v", err)
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pod     func(*corev1.Pod)
		budgets []runtime.Object
		ok      func(error) bool
	}{
		"allowed": {budgets: []runtime.Object{budget("b", 1)}},
		"spent":   {budgets: []runtime.Object{budget("b", 0)}, ok: apierrors.IsTooManyRequests},
		"two budgets": {budgets: []runtime.Object{budget("b", 1), budget("c", 1)}, ok: func(err error) bool {
			var status apierrors.APIStatus
			return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError
		}},
		"finished": {pod: func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
		}, budgets: []runtime.Object{budget("b", 0)}},
		"not ready": {pod: func(p *corev1.Pod) {
			p.Status.Conditions = nil
		}, budgets: []runtime.Object{budget("b", 0)}},
		"of others": {pod: func(p *corev1.Pod) {
			p.Labels = nil
		}, budgets: []runtime.Object{budget("b", 0)}},
		"not seen yet": {budgets: []runtime.Object{func() *policyv1.PodDisruptionBudget {
			b := budget("b", 1)
			b.Generation = 2
			return b
		}()}, ok: apierrors.IsTooManyRequests},
		"not ready, too few are": {pod: func(p *corev1.Pod) {
			p.Status.Conditions = nil
		}, budgets: []runtime.Object{short(budget("b", 0))}, ok: apierrors.IsTooManyRequests},
		"not ready, always allowed": {pod: func(p *corev1.Pod) {
			p.Status.Conditions = nil
		}, budgets: []runtime.Object{func() *policyv1.PodDisruptionBudget {
			b := short(budget("b", 0))
			b.Spec.UnhealthyPodEvictionPolicy = new(policyv1.AlwaysAllow)
			return b
		}()}},
		"no budget yet": {budgets: []runtime.Object{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := running("p")
			if c.pod != nil {
				c.pod(pod)
			}
			pods := registrytest.Of(t, "pods", pod)
			err := evict(t, registrytest.Stores{pods, budgets(t, c.budgets...)}, of("p"))
			left := stored(t, pods)
			if goes := left == nil || left.DeletionTimestamp != nil; c.ok == nil && (err != nil || !goes) ||
				c.ok != nil && (!c.ok(err) || goes) {
				t.Errorf("error %v, left %+v", err, left)
			}
		})
	}
	one := budgets(t, budget("b", 1))
	if err := evict(t, registrytest.Stores{registrytest.Of(t, "pods", running("p")), one}, of("p")); err != nil {
		t.Fatal(err)
	}
	b, err := one.Get(t.Context(), "default", "b")
	if err != nil {
		t.Fatal(err)
	}
	st := b.(*policyv1.PodDisruptionBudget).Status
	if _, ok := st.DisruptedPods["p"]; !ok || st.DisruptionsAllowed != 0 ||
		!meta.IsStatusConditionFalse(st.Conditions, policyv1.DisruptionAllowedCondition) {
		t.Errorf("budget after: %+v", st)
	}
}

// short makes a budget of which fewer pods are healthy than it needs.
func short(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	b.Status.CurrentHealthy = 0
	return b
}

// TestRefused: what the client is told, as Kubernetes words it.
// TestUnconfirmed: the error is that of a kube-apiserver v1.37.2.
func TestUnconfirmed(t *testing.T) {
	t.Parallel()
	full := budget("b", 1)
	full.Status.DisruptedPods = map[string]metav1.Time{}
	for i := range 2001 {
		full.Status.DisruptedPods[fmt.Sprint(i)] = metav1.Now()
	}
	err := evict(t, registrytest.Stores{registrytest.Of(t, "pods", running("p")), budgets(t, full)}, of("p"))
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsForbidden(err) {
		t.Fatal(err)
	}
	want := []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget b does not " +
		"allow evicting pods currently: too many pending evictions not confirmed by PDB controller"}}
	if s := status.Status(); !equality.Semantic.DeepEqual(s.Details.Causes, want) || !strings.HasPrefix(s.Message,
		`poddisruptionbudget.policy "b" is forbidden: DisruptedPods map too big`) {
		t.Errorf("%+v", s)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	ahead, failed, unseen := budget("b", 0), budget("b", 0), budget("b", 1)
	ahead.Status.CurrentHealthy = 2
	failed.Status.Conditions = []metav1.Condition{
		{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
			Message: "why"}}
	unseen.Generation = 2
	for _, c := range []struct {
		budget *policyv1.PodDisruptionBudget
		retry  int32
		cause  string
	}{
		{budget("b", 0), 0, "The disruption budget b needs 1 healthy pods and has 1 currently"},
		{ahead, 0, "The disruption budget b does not allow evicting pods currently"},
		{failed, 0, "The disruption budget b does not allow evicting pods currently because it failed sync: why"},
		{unseen, 10, "The disruption budget b is still being processed by the server."},
	} {
		err := evict(t, registrytest.Stores{registrytest.Of(t, "pods", running("p")), budgets(t, c.budget)}, of("p"))
		var status apierrors.APIStatus
		if !errors.As(err, &status) {
			t.Fatalf("%s: %v", c.cause, err)
		}
		want := &metav1.StatusDetails{RetryAfterSeconds: c.retry,
			Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: c.cause}}}
		if s := status.Status(); !apierrors.IsTooManyRequests(err) || !equality.Semantic.DeepEqual(s.Details, want) {
			t.Errorf("%+v %+v, want %+v", s, s.Details, want)
		}
	}
}

// TestNothingSpent: an eviction that is not to be, or only tried, costs the budget nothing.
func TestNothingSpent(t *testing.T) {
	t.Parallel()
	pods, one := registrytest.Of(t, "pods", running("p")), budgets(t, budget("b", 1))
	for name, opts := range map[string]*metav1.DeleteOptions{
		"another pod's UID": {Preconditions: &metav1.Preconditions{UID: new(types.UID("x"))}},
		"another version":   {Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}},
		"dry run":           {DryRun: []string{"All"}},
	} {
		e := of("p")
		e.DeleteOptions = opts
		if err := evict(t, registrytest.Stores{pods, one}, e); (err != nil) != (opts.DryRun == nil) {
			t.Errorf("%s: %v", name, err)
		}
		b, err := one.Get(t.Context(), "default", "b")
		if err != nil {
			t.Fatal(err)
		}
		if st := b.(*policyv1.PodDisruptionBudget).Status; st.DisruptionsAllowed != 1 || len(st.DisruptedPods) > 0 {
			t.Errorf("%s: %+v", name, st)
		}
	}
}

// TestManyAtOnce: however many ask at once, no more pods go than the budget allows.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	const many, allowed = 60, 7
	var all []runtime.Object
	for i := range many {
		all = append(all, running(fmt.Sprint("p", i)))
	}
	pods, one := registrytest.Of(t, "pods", all...), budgets(t, budget("b", allowed))
	rest := eviction.New(registrytest.Stores{pods, one}, func() time.Time { return time.Unix(1, 0) })
	var gone, refused atomic.Int32
	var group sync.WaitGroup
	for i := range many {
		group.Go(func() {
			name := fmt.Sprint("p", i)
			switch _, err := rest.Create(t.Context(), "default", name, of(name), nil); {
			case err == nil:
				gone.Add(1)
			case apierrors.IsTooManyRequests(err):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	b, err := one.Get(t.Context(), "default", "b")
	if err != nil {
		t.Fatal(err)
	}
	if st := b.(*policyv1.PodDisruptionBudget).Status; gone.Load() != allowed || refused.Load() != many-allowed ||
		len(st.DisruptedPods) != allowed || st.DisruptionsAllowed != 0 {
		t.Errorf("%d gone, %d refused; budget after: %+v", gone.Load(), refused.Load(), st)
	}
	left, err := pods.List(t.Context(), "default", "")
	if err != nil {
		t.Fatal(err)
	}
	staying := 0
	for _, p := range left {
		if p.(*corev1.Pod).DeletionTimestamp == nil {
			staying++
		}
	}
	if staying != many-allowed {
		t.Errorf("%d pods stay, want %d", staying, many-allowed)
	}
}

// TestMark: the pod says why it goes; a resourceVersion that the client asks for is that from before.
func TestMark(t *testing.T) {
	t.Parallel()
	pods := registrytest.Of(t, "pods", running("p"))
	s, before := registrytest.Stores{pods}, stored(t, pods)
	dry := of("p")
	dry.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{"All"}}
	if err := evict(t, s, dry); err != nil || stored(t, pods).ResourceVersion != before.ResourceVersion {
		t.Errorf("dry run: %v, wrote %+v", err, stored(t, pods))
	}
	stale, fresh := of("p"), of("p")
	stale.DeleteOptions = &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: new("1")}}
	if err := evict(t, s, stale); !apierrors.IsConflict(err) {
		t.Errorf("another version: %v", err)
	}
	fresh.DeleteOptions = &metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{ResourceVersion: &before.ResourceVersion}}
	if err := evict(t, s, fresh); err != nil {
		t.Fatal(err)
	}
	after := stored(t, pods)
	marked := slices.ContainsFunc(after.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget
	})
	if !marked || after.DeletionTimestamp == nil {
		t.Errorf("the pod that goes: %+v", after)
	}
}

func TestOptionsRefused(t *testing.T) {
	t.Parallel()
	s := registrytest.Stores{registrytest.Of(t, "pods", running("p"))}
	wrong := of("p")
	wrong.DeleteOptions = &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletionPropagation("Foo"))}
	if err := evict(t, s, wrong); !apierrors.IsInvalid(err) {
		t.Errorf("a policy that is none: %v", err)
	}
}

// TestPodBecomesReadyMeanwhile: a pod that would go without budget, but is ready before it is deleted, is judged again.
func TestPodBecomesReadyMeanwhile(t *testing.T) {
	t.Parallel()
	for name, was := range map[string]func(*corev1.Pod){
		"pending":   func(p *corev1.Pod) { p.Status = corev1.PodStatus{Phase: corev1.PodPending} },
		"not ready": func(p *corev1.Pod) { p.Status.Conditions = nil },
	} {
		for allowed := range int32(2) {
			t.Run(fmt.Sprint(name, ", allowed ", allowed), func(t *testing.T) {
				t.Parallel()
				p := running("p")
				was(p)
				pods, pdbs := registrytest.Of(t, "pods", p), budgets(t, budget("b", allowed))
				var once sync.Once
				clock := func() time.Time {
					once.Do(func() {
						change := func(current runtime.Object) (runtime.Object, error) {
							q := current.(*corev1.Pod)
							q.Status = running("p").Status
							return q, nil
						}
						if _, err := pods.Update(t.Context(), "default", "p", "status", change,
							&metav1.UpdateOptions{}); err != nil {
							t.Error(err)
						}
					})
					return time.Unix(1, 0)
				}
				_, err := eviction.New(registrytest.Stores{pods, pdbs}, clock).Create(t.Context(), "default", "p",
					of("p"), nil)
				left := stored(t, pods)
				if allowed == 0 {
					if !apierrors.IsTooManyRequests(err) || left == nil || left.DeletionTimestamp != nil {
						t.Errorf("%v, the pod is %+v; want 429 and a pod that stays", err, left)
					}
					return
				}
				if err != nil || left != nil && left.DeletionTimestamp == nil {
					t.Errorf("%v, the pod is %+v; want it to go", err, left)
				}
				b, err := pdbs.Get(t.Context(), "default", "b")
				if err != nil || b.(*policyv1.PodDisruptionBudget).Status.DisruptionsAllowed != 0 {
					t.Errorf("%v, the budget is %+v; want it spent", err, b)
				}
			})
		}
	}
}
