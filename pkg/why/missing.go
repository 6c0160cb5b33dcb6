package why

import (
	"context"
	"fmt"
	"slices"
)

// maxPlaces is how many namespaces with an object of the same name are named.
const maxPlaces = 5

// Missing answers about an object that Get did not return: one that is absent, if known is true, and otherwise one that
// could not be read. Of an absent one it says where an object of its name is, which is the usual mistake.
func Missing(ctx context.Context, c *Case, o Object, known bool) Answer {
	if !known {
		return Answer{Subject: o, State: fmt.Sprintf("%s could not be read.", o)}
	}
	a := Answer{Subject: o, State: fmt.Sprintf("%s does not exist.", o)}
	r, served := c.Served(o.Group, o.Kind)
	if !served {
		a.Causes = []Cause{{Code: "KindNotServed",
			Text: fmt.Sprintf("The server serves no kind %s of group %q.", o.Kind, o.Group)}}
		return a
	}
	if o.Namespace == "" {
		a.Causes = []Cause{{Code: "NotFound", Text: fmt.Sprintf("There is no %s named %s.", o.Kind, o.Name),
			Evidence: []Evidence{Absent(o.Kind, "", o.Name)}}}
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
		a.Causes = append(a.Causes, Cause{Code: "WrongNamespace",
			Text:     fmt.Sprintf("%s %s is in namespace %s.", o.Kind, o.Name, p),
			Evidence: []Evidence{{Object: there, Field: ".metadata.namespace", Value: p}},
			Fixes: []Fix{{Text: "Name that namespace.", Command: Command("kubectl why -n %s %s %s", p,
				r.GroupResource(), o.Name)}}})
	}
	if len(places) == 0 {
		a.Causes = []Cause{{Code: "NotFound", Text: fmt.Sprintf("There is no %s %s in namespace %s.", o.Kind, o.Name,
			o.Namespace), Evidence: []Evidence{Absent(o.Kind, o.Namespace, o.Name)}}}
	}
	return a
}
