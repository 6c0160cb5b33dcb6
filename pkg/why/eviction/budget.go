package eviction

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/why"
)

// Budget explains a PodDisruptionBudget: why it allows no disruption, or protects nothing.
func Budget(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	b, known := why.Get[policyv1.PodDisruptionBudget](ctx, c.World, o.Namespace, o.Name)
	if b == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := budget(b)
	a := why.Answer{Subject: self}
	if b.DeletionTimestamp != nil {
		a.State = fmt.Sprintf("%s is being deleted.", self)
		var err error
		a.Causes, err = why.Finalizers(ctx, c, self, b)
		return a, err
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		a.State = fmt.Sprintf("%s has a selector that cannot be read: %s.", self, why.Quote(err.Error()))
		return a, nil
	}
	pods, complete := why.List[corev1.Pod](ctx, c.World, b.Namespace, selector)
	switch {
	case complete && len(pods) == 0:
		a.State = fmt.Sprintf("%s protects no pod.", self)
		a.Causes = []why.Cause{{Code: "BudgetOfNothing", Text: fmt.Sprintf("No pod in namespace %s matches its selector %s.",
			b.Namespace, metav1.FormatLabelSelector(b.Spec.Selector)),
			Evidence: []why.Evidence{why.See(self, ".spec.selector", metav1.FormatLabelSelector(b.Spec.Selector))},
			Fixes: []why.Fix{{Text: "Let it select the labels of the pods that it is for.",
				Command: "kubectl edit " + self.Arg() + self.Flag()}}}}
	case b.Status.DisruptionsAllowed > 0:
		a.State, a.Well = fmt.Sprintf("%s allows %s now.", self,
			why.Count(int(b.Status.DisruptionsAllowed), "disruption")), true
	default:
		a.State = fmt.Sprintf("%s allows no disruption now.", self)
		cause, err := full(ctx, c, b)
		a.Causes = []why.Cause{cause}
		return a, err
	}
	return a, nil
}
