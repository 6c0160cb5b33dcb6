package pod

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// accountOf is the name of the ServiceAccount that a pod runs as.
func accountOf(p *corev1.Pod) string {
	if p.Spec.ServiceAccountName == "" {
		return "default"
	}
	return p.Spec.ServiceAccountName
}

// otherAccount is the code by which the answer about a right names accounts that have it.
const otherAccount = "OtherAccountMay"

// withAccount puts first, among the causes of a refusal, that the pod runs as another account than the one that was
// probably made for it: of a pod of the account default, one that has the right; of others, one that has it and that no
// pod runs as.
func withAccount(ctx context.Context, q *inquiry, causes []why.Cause) []why.Cause {
	account := accountOf(q.pod)
	for _, cause := range causes {
		for _, other := range cause.Because {
			if other.Code != otherAccount || len(other.Evidence) == 0 {
				continue
			}
			name := other.Evidence[0].Object.Name
			if account != "default" && !unused(ctx, q, name) {
				continue
			}
			return append([]why.Cause{accountNotUsed(q, account, name, other)}, withoutOther(causes, other.Text)...)
		}
	}
	return causes
}

// withoutOther are causes without the one about another account that has been told.
func withoutOther(causes []why.Cause, told string) []why.Cause {
	causes = slices.Clone(causes)
	for i := range causes {
		causes[i].Because = slices.DeleteFunc(slices.Clone(causes[i].Because), func(c why.Cause) bool {
			return c.Code == otherAccount && c.Text == told
		})
	}
	return causes
}

// unused reports whether no pod of the namespace runs as an account.
func unused(ctx context.Context, q *inquiry, account string) bool {
	pods, complete := why.List[corev1.Pod](ctx, q.World, q.pod.Namespace, nil)
	return complete && !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return accountOf(p) == account })
}

// accountNotUsed is the cause of a pod that runs as one account where another one was probably meant.
func accountNotUsed(q *inquiry, account, name string, other why.Cause) why.Cause {
	cause := why.Cause{Code: "AccountNotUsed", Evidence: append([]why.Evidence{
		why.See(q.self, ".spec.serviceAccountName", account)}, other.Evidence...)}
	cause.Text = fmt.Sprintf("The pod runs as the ServiceAccount %s. %s No pod runs as that one: it was probably meant.",
		account, other.Text)
	if account == "default" {
		cause.Text = fmt.Sprintf("The pod runs as the ServiceAccount default, as all do whose template names no "+
			"serviceAccountName. %s It was probably meant.", other.Text)
	}
	fix := why.Fix{Text: fmt.Sprintf("Make the pod again with serviceAccountName: %s.", name)}
	if owner := q.workload(); owner != nil {
		fix.Text = fmt.Sprintf("Let the pods of %s run as %s (serviceAccountName).", owner, name)
		if slices.Contains(withTemplates, owner.Kind) {
			fix.Command = why.Command("kubectl set serviceaccount %s%s %s", owner.Arg(), owner.Flag(), name)
		}
	}
	cause.Fixes = []why.Fix{fix}
	return cause
}
