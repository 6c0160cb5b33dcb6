package object

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/why"
)

// Bounds of what is asked about in a namespace, and of what is named. Whoever wants more asks about one object.
const (
	maxAsked = 200
	maxNamed = 10
)

// inNamespaces are the resources whose objects are asked, in an order that has what others depend on first.
var inNamespaces = []struct{ group, resource, kind string }{
	{"", "persistentvolumeclaims", "PersistentVolumeClaim"},
	{"apps", "statefulsets", "StatefulSet"},
	{"apps", "deployments", "Deployment"},
	{"apps", "daemonsets", "DaemonSet"},
	{"apps", "replicasets", "ReplicaSet"},
	{"batch", "cronjobs", "CronJob"},
	{"batch", "jobs", "Job"},
	{"", "pods", "Pod"},
	{"autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler"},
	{"", "services", "Service"},
	{"networking.k8s.io", "ingresses", "Ingress"},
}

// active explains what is not well in a namespace: the objects that no other controls, each with its first cause in
// short.
func active(ctx context.Context, c *why.Case, self why.Object, n *corev1.Namespace) (why.Answer, error) {
	asked, bad := 0, 0
	var causes []why.Cause
	told := map[string]bool{} // the last causes of chains
	for _, k := range inNamespaces {
		r, served := c.Resource(k.group, k.resource)
		if !served {
			continue
		}
		items, _ := c.All(ctx, r, n.Name)
		for i := range items {
			if metav1.GetControllerOf(&items[i]) != nil {
				continue
			}
			if asked == maxAsked {
				c.Note(fmt.Sprintf("Only the first %d objects of the namespace were asked.", maxAsked))
				break
			}
			asked++
			o := why.ObjectOf(k.group, k.kind, &items[i])
			a, err := c.Explain(ctx, o)
			if err != nil {
				return why.Answer{}, err
			}
			if a.Well {
				continue
			}
			bad++
			causes = append(causes, notWell(o, a, told))
		}
	}
	answer := why.Answer{Subject: self, Well: bad == 0, Causes: causes[:min(len(causes), maxNamed)]}
	switch {
	case asked == 0:
		answer.State = fmt.Sprintf("%s is active, and has no workloads, claims or Services.", self)
	case bad == 0:
		answer.State = fmt.Sprintf("%s is active, and all is well in it (%s).", self, why.Count(asked, "object"))
	default:
		answer.State = fmt.Sprintf("%s is active, and not all is well in it: %d of %s.", self, bad,
			why.Count(asked, "object"))
	}
	return answer, nil
}

// notWell is the answer about one object in short.
func notWell(o why.Object, a why.Answer, told map[string]bool) why.Cause {
	more := why.Fix{Text: "Ask for its evidence, and for what helps.",
		Command: why.Command("kubectl why %s%s", o.Arg(), o.Flag())}
	cause := why.Cause{Code: "NotWell", Text: a.State, Fixes: []why.Fix{more}}
	if len(a.Causes) == 0 {
		return cause
	}
	chain, last := short(a.Causes[0])
	if told[last] {
		cause.Text += " The cause is one that is named above."
		return cause
	}
	told[last] = true
	cause.Because = []why.Cause{chain}
	return cause
}

// short is a chain of first causes, without evidence and changes, and the text of the last one.
func short(c why.Cause) (chain why.Cause, last string) {
	chain = why.Cause{Code: c.Code, Text: c.Text}
	if len(c.Because) == 0 {
		return chain, c.Text
	}
	next, last := short(c.Because[0])
	chain.Because = []why.Cause{next}
	return chain, last
}
