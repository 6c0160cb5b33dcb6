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
			causes = append(causes, notWell(a, told))
		}
	}
	answer := why.Answer{Subject: self, Well: bad == 0, Causes: causes[:min(len(causes), maxNamed)]}
	switch {
	case asked == 0:
		answer.State = fmt.Sprintf("%s is active, and has no workloads, claims or Services.", self)
	case bad == 0:
		answer.State = fmt.Sprintf("%s is active, and all is well in it (%s).", self, why.Count(asked, "object"))
	default:
		answer.State = fmt.Sprintf("%s is active, and %d of its %d workloads, claims, Services and Ingresses %s not "+
			"well. Ask about one of them for all that is known (%s).", self, bad, asked, verb(bad),
			why.Command("kubectl why TYPE/NAME -n %s", n.Name))
	}
	return answer, nil
}

func verb(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// notWell is the answer about one object in short.
func notWell(a why.Answer, told map[string]bool) why.Cause {
	cause := why.Cause{Code: "NotWell", Text: a.State}
	chain, last, others := short(a.Causes)
	if others > 0 {
		cause.Text += fmt.Sprintf(" It has %s.", why.Count(others, "more cause"))
	}
	if len(chain) == 0 {
		return cause
	}
	if told[last] {
		cause.Text += " The cause is one that is named above."
		return cause
	}
	told[last] = true
	cause.Because = chain
	return cause
}

// short is the chain of the first causes, without evidence, with the smallest change of the last one that has any. last
// is the text of its last one, and others is how many causes beside it are left out.
func short(causes []why.Cause) (chain []why.Cause, last string, others int) {
	if len(causes) == 0 {
		return nil, "", 0
	}
	first := causes[0]
	below, last, others := short(first.Because)
	link := why.Cause{Code: first.Code, Text: first.Text, Because: below}
	if len(below) == 0 {
		last = first.Text
	}
	if !helped(below) && len(first.Fixes) > 0 {
		link.Fixes = first.Fixes[:1]
	}
	return []why.Cause{link}, last, others + len(causes) - 1
}

// helped reports whether a link of a chain has a change that helps.
func helped(chain []why.Cause) bool {
	return len(chain) > 0 && (len(chain[0].Fixes) > 0 || helped(chain[0].Because))
}
