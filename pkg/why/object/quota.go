package object

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/quota"
	"bonsai/pkg/why"
)

// Quota explains a ResourceQuota: what of it is used up.
func Quota(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	q, known := why.Get[corev1.ResourceQuota](ctx, c.World, o.Namespace, o.Name)
	if q == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("", "ResourceQuota", q)
	a := why.Answer{Subject: self, Well: true}
	if len(q.Status.Hard) == 0 && len(q.Spec.Hard) > 0 {
		a.Well, a.State = false, fmt.Sprintf("%s has not been counted yet.", self)
		a.Causes = []why.Cause{{Code: "NotObserved", Text: "The controller has not looked at it yet: until then it refuses " +
			"what it bounds. Does kube-controller-manager run?",
			Evidence: []why.Evidence{why.See(self, ".status.hard", "empty")}}}
		return a, nil
	}
	for _, name := range quota.Names(q.Status.Hard) {
		hard, used := q.Status.Hard[name], q.Status.Used[name]
		if used.Cmp(hard) < 0 || hard.IsZero() && used.IsZero() {
			continue
		}
		a.Well = false
		text := fmt.Sprintf("Of %s, all is used: %s of %s.", name, used.String(), hard.String())
		if used.Cmp(hard) > 0 {
			text = fmt.Sprintf("Of %s, more is used than allowed: %s of %s. What was there before is kept.", name,
				used.String(), hard.String())
		}
		a.Causes = append(a.Causes, why.Cause{Code: "QuotaExceeded", Text: text,
			Evidence: []why.Evidence{why.See(self, fmt.Sprintf(".status.used['%s']", name), used.String()),
				why.See(self, fmt.Sprintf(".spec.hard['%s']", name), hard.String())},
			Fixes: []why.Fix{{Text: "Remove what uses it, or raise the quota.",
				Command: "kubectl edit " + self.Arg() + self.Flag()}}})
	}
	a.State = fmt.Sprintf("%s has room for all that it counts.", self)
	if !a.Well {
		a.State = fmt.Sprintf("%s has no room left of %s.", self, why.Count(len(a.Causes), "resource"))
	}
	a.Causes = slices.Clip(a.Causes)
	return a, nil
}
