// Package presence explains objects of any kind by the one fact that all have: whether they exist.
package presence

import (
	"context"
	"fmt"
	"slices"

	"bonsai/pkg/why"
)

// Explain implements why.Explainer.
func Explain(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	u, known := c.ByKind(ctx, o.Group, o.Kind, o.Namespace, o.Name)
	switch {
	case u != nil:
		o.UID = u.GetUID()
		return why.Answer{Subject: o, Well: true,
			State: sentence(o, "exists, and nothing more is known of its kind")}, nil
	case !known:
		return why.Answer{Subject: o, State: sentence(o, "could not be read")}, nil
	}
	return absent(ctx, c, o), nil
}

// sentence says something of an object.
func sentence(o why.Object, what string) string {
	name := o.Name
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %s %s.", o.Kind, name, what)
}

// maxPlaces is how many namespaces with an object of the same name are named.
const maxPlaces = 5

// absent is the answer about an object that does not exist: where one of its name is, which is the usual mistake.
func absent(ctx context.Context, c *why.Case, o why.Object) why.Answer {
	a := why.Answer{Subject: o, State: sentence(o, "does not exist")}
	r, served := c.Served(o.Group, o.Kind)
	if !served {
		a.Causes = []why.Cause{{Code: "KindNotServed",
			Text: fmt.Sprintf("The server serves no kind %s of group %q.", o.Kind, o.Group)}}
		return a
	}
	if o.Namespace == "" {
		return a
	}
	items, _ := c.All(ctx, r, "")
	var places []string
	for i := range items {
		if items[i].GetName() == o.Name {
			places = append(places, items[i].GetNamespace())
		}
	}
	slices.Sort(places)
	for _, p := range places[:min(len(places), maxPlaces)] {
		there := o
		there.Namespace = p
		a.Causes = append(a.Causes, why.Cause{Code: "WrongNamespace",
			Text:     fmt.Sprintf("%s %s is in namespace %s.", o.Kind, o.Name, p),
			Evidence: []why.Evidence{{Object: there, Field: ".metadata.namespace", Value: p}},
			Fixes: []why.Fix{{Text: "Name that namespace", Command: fmt.Sprintf("kubectl why -n %s %s %s", p,
				r.GroupResource(), o.Name)}}})
	}
	return a
}
