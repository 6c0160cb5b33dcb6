// Package object explains objects of any kind: why one does not go, or does not exist; and what belongs to the API
// itself: namespaces, CustomResourceDefinitions and APIServices.
package object

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/why"
)

// Explain explains an object whose kind has no explainer of its own: by its deletion and its conditions, which by
// convention are True when all is well, except for some that say the opposite.
func Explain(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	u, known := c.ByKind(ctx, o.Group, o.Kind, o.Namespace, o.Name)
	if u == nil {
		a := why.Missing(ctx, c, o, known)
		if _, served := c.Served(o.Group, o.Kind); known && !served {
			a.Causes[0].Because = definitions(ctx, c, o)
		}
		return a, nil
	}
	self := why.ObjectOf(o.Group, o.Kind, u)
	if u.GetDeletionTimestamp() != nil {
		return going(ctx, c, self, u)
	}
	a := why.Answer{Subject: self, State: fmt.Sprintf("%s exists.", self), Well: true}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, one := range conditions {
		cond, _ := one.(map[string]any)
		text := func(key string) string { s, _ := cond[key].(string); return s }
		if cond == nil || text("status") != "False" || !positive[text("type")] {
			continue
		}
		a.Well = false
		a.State = fmt.Sprintf("%s is not well.", self)
		a.Causes = append(a.Causes, why.Cause{Code: text("type"),
			Text: fmt.Sprintf("Its controller says that %s is False (%s): %s.", text("type"), text("reason"),
				why.Quote(text("message"))),
			Evidence: []why.Evidence{why.See(self, fmt.Sprintf(`.status.conditions[?(@.type=="%s")]`, text("type")),
				text("status")+": "+text("message"))}})
	}
	return a, nil
}

// positive are the types of conditions that are False when something is wrong, whatever the kind.
var positive = map[string]bool{"Ready": true, "Available": true, "Established": true, "NamesAccepted": true,
	"Synced": true, "Healthy": true, "Accepted": true, "Programmed": true, "ResolvedRefs": true, "Succeeded": true,
	"Initialized": true, "Approved": true}

// going answers about an object that was deleted and is still there.
func going(ctx context.Context, c *why.Case, self why.Object, u *unstructured.Unstructured) (why.Answer, error) {
	causes, err := why.Finalizers(ctx, c, self, u)
	a := why.Answer{Subject: self, Causes: causes, State: fmt.Sprintf("%s has been terminating for %s.", self,
		why.Span(c.Now.Sub(u.GetDeletionTimestamp().Time)))}
	if len(u.GetFinalizers()) == 0 {
		a.State += " Nothing keeps it any more: it is about to go."
	}
	return a, err
}
