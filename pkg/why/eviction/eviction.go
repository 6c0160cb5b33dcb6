// Package eviction explains an eviction that is refused: which disruption budget forbids it, and why that has no room.
package eviction

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/why"
)

// Explain answers whether a pod may be evicted now, and which budgets forbid it.
func Explain(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	p, known := why.Get[corev1.Pod](ctx, c.World, o.Namespace, o.Name)
	if p == nil {
		a := why.Answer{Subject: o, State: fmt.Sprintf("%s could not be read.", o)}
		if known {
			a.State = fmt.Sprintf("%s does not exist.", o)
			a.Causes = []why.Cause{{Code: "NotFound", Text: "There is no such pod to evict.",
				Evidence: []why.Evidence{why.Absent("Pod", o.Namespace, o.Name)}}}
		}
		return c.Finish(a), nil
	}
	self := why.ObjectOf("", "Pod", p)
	a := why.Answer{Subject: self}
	budgets, _ := why.List[policyv1.PodDisruptionBudget](ctx, c.World, p.Namespace, nil)
	var over []*policyv1.PodDisruptionBudget
	for _, b := range budgets {
		s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && s.Matches(labels.Set(p.Labels)) {
			over = append(over, b)
		}
	}
	free := p.Status.Phase == corev1.PodPending || p.Status.Phase == corev1.PodSucceeded ||
		p.Status.Phase == corev1.PodFailed || p.DeletionTimestamp != nil
	switch {
	case free:
		a.State, a.Well = fmt.Sprintf("%s may be evicted: budgets protect only running pods.", self), true
		return c.Finish(a), nil
	case len(over) == 0:
		a.State, a.Well = fmt.Sprintf("%s may be evicted: no PodDisruptionBudget selects it.", self), true
		return c.Finish(a), nil
	case len(over) > 1:
		a.State = fmt.Sprintf("%s cannot be evicted.", self)
		var names []string
		for _, b := range over {
			names = append(names, b.Name)
		}
		cause := why.Cause{Code: "SeveralBudgets",
			Text: fmt.Sprintf("The PodDisruptionBudgets %s select the pod, and evictions support one only.",
				why.And(names))}
		for _, b := range over {
			cause.Evidence = append(cause.Evidence, why.See(budget(b), ".spec.selector",
				metav1.FormatLabelSelector(b.Spec.Selector)))
		}
		cause.Fixes = []why.Fix{{Text: "Change the budgets so that one selects the pod.",
			Command: "kubectl edit " + budget(over[1]).Arg() + self.Flag()}}
		a.Causes = []why.Cause{cause}
		return c.Finish(a), nil
	}
	b := over[0]
	allowed := b.Status.DisruptionsAllowed > 0
	if !allowed && !ready(p) && (always(b) || b.Status.CurrentHealthy >= b.Status.DesiredHealthy &&
		b.Status.DesiredHealthy > 0) {
		a.State, a.Well = fmt.Sprintf("%s may be evicted: it is not ready, and its budget allows that.", self), true
		return c.Finish(a), nil
	}
	if allowed {
		a.State, a.Well = fmt.Sprintf("%s may be evicted: %s allows %s now.", self, budget(b),
			why.Count(int(b.Status.DisruptionsAllowed), "disruption")), true
		return c.Finish(a), nil
	}
	a.State = fmt.Sprintf("%s may not be evicted now: %s forbids it.", self, budget(b))
	cause, err := full(ctx, c, b)
	if !ready(p) {
		cause.Fixes = append(cause.Fixes, why.Fix{Text: "Let the budget give up pods that are not ready: they serve " +
			"nobody.",
			Command: why.Command(
				`kubectl patch pdb %s%s --type=merge -p '{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}'`,
				b.Name,
				self.Flag())})
	}
	a.Causes = []why.Cause{cause}
	return c.Finish(a), err
}

// full explains a budget without room: by its own numbers, or by pods that are not ready.
func full(ctx context.Context, c *why.Case, b *policyv1.PodDisruptionBudget) (why.Cause, error) {
	o := budget(b)
	s := &b.Status
	cause := why.Cause{Code: "BudgetFull", Evidence: []why.Evidence{
		why.See(o, ".status.disruptionsAllowed", "0"),
		why.See(o, ".status.currentHealthy", fmt.Sprint(s.CurrentHealthy)),
		why.See(o, ".status.desiredHealthy", fmt.Sprint(s.DesiredHealthy)),
		why.See(o, ".status.expectedPods", fmt.Sprint(s.ExpectedPods))}}
	rule, field := "", ""
	switch {
	case b.Spec.MinAvailable != nil:
		rule, field = "minAvailable is "+b.Spec.MinAvailable.String(), ".spec.minAvailable"
		cause.Evidence = append(cause.Evidence, why.See(o, field, b.Spec.MinAvailable.String()))
	case b.Spec.MaxUnavailable != nil:
		rule, field = "maxUnavailable is "+b.Spec.MaxUnavailable.String(), ".spec.maxUnavailable"
		cause.Evidence = append(cause.Evidence, why.See(o, field, b.Spec.MaxUnavailable.String()))
	}
	if s.ObservedGeneration < b.Generation {
		cause.Code = "BudgetNotObserved"
		cause.Text = fmt.Sprintf("The controller has not looked at %s since it was changed, and no eviction is "+
			"allowed until then.", o)
		return cause, nil
	}
	if empty(b.Spec.Selector) {
		cause.Because = append(cause.Because, why.Cause{Code: "BudgetOfAll",
			Text:     "Its selector is empty: it counts all pods of the namespace, whoever made them.",
			Evidence: []why.Evidence{why.See(o, ".spec.selector", "{}")},
			Fixes: []why.Fix{{Text: "Let it select the pods that it is for.",
				Command: "kubectl edit " + o.Arg() + o.Flag()}}})
	}
	for _, cond := range s.Conditions {
		if cond.Type != policyv1.DisruptionAllowedCondition || cond.Reason != policyv1.SyncFailedReason {
			continue
		}
		cause.Code = "BudgetCannotCount"
		cause.Text = fmt.Sprintf("%s cannot count its pods, and allows no eviction until it can: %s.", o,
			why.Quote(cond.Message))
		cause.Evidence = append(cause.Evidence, why.Condition(o, cond.Type, string(cond.Status), cond.Reason,
			cond.Message, cond.LastTransitionTime))
		if strings.Contains(cond.Message, "found no controller") {
			cause.Text += fmt.Sprintf(" Its rule (%s) is about a number that a controller wants, and pods that nothing "+
				"controls have none.", rule)
			cause.Fixes = []why.Fix{countable(o)}
		}
		return cause, nil
	}
	if single := uncontrolled(ctx, c, b); s.ExpectedPods == 0 && len(single) > 0 {
		cause.Code = "BudgetCannotCount"
		who := "pod " + single[0].Name + " has"
		if n := len(single); n > 1 {
			who = fmt.Sprintf("%d of its pods, such as %s, have", n, single[0].Name)
		}
		cause.Text = fmt.Sprintf("%s counts none of its pods, and allows no eviction: its rule (%s) is about a number "+
			"that a controller wants, and %s no controller.", o, rule, who)
		cause.Evidence = append(cause.Evidence, why.See(why.ObjectOf("", "Pod", single[0]),
			".metadata.ownerReferences", "empty"))
		cause.Fixes = []why.Fix{countable(o)}
		return cause, nil
	}
	if s.DesiredHealthy >= s.ExpectedPods && s.CurrentHealthy >= s.ExpectedPods {
		cause.Code = "BudgetNeverAllows"
		cause.Text = fmt.Sprintf("%s wants all %s healthy (%s): it never allows an eviction, even when all are "+
			"well.", o,
			why.Count(int(s.ExpectedPods), "pod"), rule)
		cause.Fixes = []why.Fix{{Text: "Allow one pod to be unavailable, or run one more.", Command: why.Command(
			`kubectl patch pdb %s%s --type=merge -p '{"spec":{"minAvailable":null,"maxUnavailable":1}}'`, b.Name,
			o.Flag())}}
		return cause, nil
	}
	cause.Text = fmt.Sprintf("%s wants %d of %s healthy (%s), and %d are.", o, s.DesiredHealthy,
		why.Count(int(s.ExpectedPods), "pod"), rule, s.CurrentHealthy)
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return cause, nil
	}
	pods, _ := why.List[corev1.Pod](ctx, c.World, b.Namespace, selector)
	waiting := slices.DeleteFunc(pods, func(p *corev1.Pod) bool {
		return ready(p) || p.Status.Phase == corev1.PodSucceeded
	})
	cause.Because, err = why.NotReady(ctx, c, waiting)
	return cause, err
}

// uncontrolled are the pods of a budget that no controller has made.
func uncontrolled(ctx context.Context, c *why.Case, b *policyv1.PodDisruptionBudget) (list []*corev1.Pod) {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return nil
	}
	pods, _ := why.List[corev1.Pod](ctx, c.World, b.Namespace, selector)
	for _, p := range pods {
		if metav1.GetControllerOf(p) == nil {
			list = append(list, p)
		}
	}
	return list
}

// countable is the change that lets a budget count pods.
func countable(o why.Object) why.Fix {
	return why.Fix{Text: "Let a controller make these pods, or give the budget a minAvailable that is a number.",
		Command: "kubectl edit " + o.Arg() + o.Flag()}
}

func budget(b *policyv1.PodDisruptionBudget) why.Object {
	return why.ObjectOf(policyv1.GroupName, "PodDisruptionBudget", b)
}

func empty(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// always reports whether a budget lets pods that are not ready go whatever its numbers are.
func always(b *policyv1.PodDisruptionBudget) bool {
	return b.Spec.UnhealthyPodEvictionPolicy != nil && *b.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
