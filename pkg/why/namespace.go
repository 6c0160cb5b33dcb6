package why

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// NamespaceGoing explains what cannot be made in a namespace that is being deleted; nil if it is not. If the namespace
// does not go by itself, what keeps it is below.
func NamespaceGoing(ctx context.Context, c *Case, name string) (*Cause, error) {
	n, _ := Get[corev1.Namespace](ctx, c.World, "", name)
	if n == nil || n.DeletionTimestamp == nil {
		return nil, nil
	}
	o := ObjectOf("", "Namespace", n)
	since := n.DeletionTimestamp.UTC().Format(time.RFC3339)
	because, err := c.Causes(ctx, o)
	if err != nil {
		return nil, err
	}
	return &Cause{Code: namespaceTerminating,
		Text:     fmt.Sprintf("Namespace %s is being deleted (since %s): no new objects are made in it.", name, since),
		Evidence: []Evidence{SeeDeleted(o, n)},
		Fixes:    []Fix{{Text: "When the namespace is gone, make it and its objects again, or make them in another one."}},
		Because:  lasting(because)}, nil
}

// namespaceTerminating is the code of what NamespaceGoing explains.
const namespaceTerminating = "NamespaceTerminating"

// InNamespace is an explainer of objects whose pods or other dependents are made in their own namespace: while that is
// being deleted, none is well, and this is the first cause of what they lack.
func InNamespace(e ExplainerFunc) Explainer {
	return ExplainerFunc(func(ctx context.Context, c *Case, o Object) (Answer, error) {
		a, err := e(ctx, c, o)
		if err != nil {
			return a, err
		}
		u, _ := c.ByKind(ctx, o.Group, o.Kind, o.Namespace, o.Name)
		if u != nil && u.GetDeletionTimestamp() != nil {
			return a, nil // only its own finalizers keep it
		}
		going, err := NamespaceGoing(ctx, c, o.Namespace)
		if err != nil || going == nil {
			return a, err
		}
		a.Well, a.Causes = false, append([]Cause{*going}, lasting(a.Causes)...)
		return a, nil
	})
}

// lasting returns causes without those that follow from a deletion alone: pods that end within their grace period, and
// what could not be made since the namespace is being deleted.
func lasting(causes []Cause) (list []Cause) {
	for _, cause := range causes {
		below := lasting(cause.Because)
		follows := slices.Contains([]string{"GracePeriod", namespaceTerminating}, cause.Code)
		if follows || len(below) == 0 && len(cause.Because) > 0 {
			continue
		}
		cause.Because = below
		list = append(list, cause)
	}
	return list
}
