package eviction

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/registry"
)

// maxDisrupted bounds status.disruptedPods, which the disruption controller empties. It is upstream's. Without the
// controller, the object would grow with each eviction.
const maxDisrupted = 2000

var budgetResource = schema.GroupResource{Group: policyv1.GroupName, Resource: "poddisruptionbudgets"}

// spendBudget takes one disruption from the budget that covers pod, if any; spent tells that pod's readiness then
// matters no more. It does matter where the pod may go for not being ready.
//
// The budget is spent before the pod is deleted, in a write of its own: two evictions at the same time cannot both take
// the last disruption. If the deletion then fails, the disruption stays spent until the disruption controller computes
// the status again.
func (r *REST) spendBudget(ctx context.Context, pod *corev1.Pod, dryRun []string) (spent bool, err error) {
	store := r.stores.Store(budgetResource)
	if store == nil {
		return true, nil
	}
	name, err := budgetOf(ctx, store, pod)
	if err != nil || name == "" {
		return err == nil, err
	}
	change := func(current runtime.Object) (runtime.Object, error) {
		pdb := current.(*policyv1.PodDisruptionBudget)
		left := pdb.Status.DisruptionsAllowed
		err := spend(pdb, pod, metav1.NewTime(r.now()))
		spent = pdb.Status.DisruptionsAllowed < left
		return pdb, err
	}
	_, err = store.Update(ctx, pod.Namespace, name, "status", change,
		&metav1.UpdateOptions{DryRun: dryRun, FieldManager: registry.Self})
	return spent, err
}

// budgetOf returns the name of the one budget whose selector matches pod, "" if none does.
func budgetOf(ctx context.Context, store registry.Store, pod *corev1.Pod) (string, error) {
	objs, err := store.List(ctx, pod.Namespace, "")
	if err != nil {
		return "", fmt.Errorf("listing disruption budgets of %s: %w", pod.Namespace, err)
	}
	found := ""
	for _, obj := range objs {
		pdb := obj.(*policyv1.PodDisruptionBudget)
		sel, err := metav1.LabelSelectorAsSelector(pdb.Spec.Selector)
		if err != nil || !sel.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if found != "" {
			return "", &apierrors.StatusError{
				ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
					Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}}
		}
		found = pdb.Name
	}
	return found, nil
}

// spend notes pod's disruption in pdb, or refuses it with 429.
func spend(pdb *policyv1.PodDisruptionBudget, pod *corev1.Pod, now metav1.Time) error {
	ready := meta.IsStatusConditionTrue(podConditions(pod), string(corev1.PodReady))
	if !ready && unhealthyMayGo(pdb) {
		return nil
	}
	if pdb.Status.ObservedGeneration < pdb.Generation {
		return tooMany(fmt.Sprintf("The disruption budget %s is still being processed by the server.", pdb.Name), 10)
	}
	if len(pdb.Status.DisruptedPods) > maxDisrupted {
		return unconfirmed(pdb.Name)
	}
	if pdb.Status.DisruptionsAllowed <= 0 {
		return tooMany(spent(pdb), 0)
	}
	pdb.Status.DisruptionsAllowed--
	if pdb.Status.DisruptionsAllowed == 0 {
		meta.SetStatusCondition(&pdb.Status.Conditions,
			metav1.Condition{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
				Reason: policyv1.InsufficientPodsReason, ObservedGeneration: pdb.Status.ObservedGeneration,
				LastTransitionTime: now})
	}
	if pdb.Status.DisruptedPods == nil {
		pdb.Status.DisruptedPods = map[string]metav1.Time{}
	}
	pdb.Status.DisruptedPods[pod.Name] = now
	return nil
}

// unhealthyMayGo is KEP-3017: pods that are not ready never use up the budget with AlwaysAllow, and with the default
// only while enough others are healthy.
func unhealthyMayGo(pdb *policyv1.PodDisruptionBudget) bool {
	p := pdb.Spec.UnhealthyPodEvictionPolicy
	if p != nil && *p == policyv1.AlwaysAllow {
		return true
	}
	return pdb.Status.CurrentHealthy >= pdb.Status.DesiredHealthy && pdb.Status.DesiredHealthy > 0
}

func podConditions(pod *corev1.Pod) []metav1.Condition {
	var out []metav1.Condition
	for _, c := range pod.Status.Conditions {
		out = append(out, metav1.Condition{Type: string(c.Type), Status: metav1.ConditionStatus(c.Status)})
	}
	return out
}

// spent says why a budget allows nothing.
func spent(pdb *policyv1.PodDisruptionBudget) string {
	st := &pdb.Status
	c := meta.FindStatusCondition(st.Conditions, policyv1.DisruptionAllowedCondition)
	switch {
	case c != nil && c.Reason == policyv1.SyncFailedReason:
		return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently because it failed sync: %s",
			pdb.Name, c.Message)
	case st.CurrentHealthy <= st.DesiredHealthy:
		return fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", pdb.Name,
			st.DesiredHealthy, st.CurrentHealthy)
	}
	return fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", pdb.Name)
}

func tooMany(detail string, retrySeconds int) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.",
		retrySeconds)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes,
		metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: detail})
	return err
}

// unconfirmed is the error while the controller has not seen too many of a budget's evictions.
func unconfirmed(budget string) error {
	err := apierrors.NewForbidden(schema.GroupResource{Group: policyv1.GroupName, Resource: "poddisruptionbudget"},
		budget, errors.New("DisruptedPods map too big - too many evictions not confirmed by PDB controller"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause,
		Message: fmt.Sprintf("The disruption budget %s does not allow evicting pods currently: too many pending evictions "+
			"not confirmed by PDB controller", budget)}}
	return err
}
