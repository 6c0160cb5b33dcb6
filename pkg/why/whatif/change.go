package whatif

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Verb is what a change does.
type Verb string

// The verbs.
const (
	Scale    Verb = "scale"
	Drain    Verb = "drain"
	Cordon   Verb = "cordon"
	Uncordon Verb = "uncordon"
	Delete   Verb = "delete"
	Apply    Verb = "apply"
)

// Change is what would be done.
type Change struct {
	Verb Verb
	// Kind and Name are those of an argument: deployment, web. Of Drain, Cordon and Uncordon only Name is set.
	Kind, Name string
	// Namespace is that of the workload.
	Namespace string
	Replicas  int
	// Objects are those of files, for Apply.
	Objects []*unstructured.Unstructured
}

// maxReplicas bounds how many pods are placed for one workload.
const maxReplicas = 5000

// Usage is what a change may be.
const Usage = "'scale deployment/NAME --replicas=N', 'drain NODE', 'cordon NODE', 'uncordon NODE', " +
	"'delete node NODE' or 'delete TYPE/NAME'"

// Parse reads a change as kubectl's arguments have it, a leading "kubectl" included.
func Parse(text string) (Change, error) {
	words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(text), "kubectl "))
	wrong := fmt.Errorf("unknown change %q: use %s", text, Usage)
	if len(words) < 2 {
		return Change{}, wrong
	}
	c := Change{Verb: Verb(words[0]), Replicas: -1}
	var names []string
	for i := 1; i < len(words); i++ {
		value, ok := strings.CutPrefix(words[i], "--replicas")
		switch {
		case ok && value == "" && i+1 < len(words):
			i++
			value = words[i]
		case ok:
			value = strings.TrimPrefix(value, "=")
		case strings.HasPrefix(words[i], "-"):
			continue // drain's flags do not matter here
		default:
			names = append(names, words[i])
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > maxReplicas {
			return Change{}, fmt.Errorf("--replicas=%s: must be a number from 0 to %d", value, maxReplicas)
		}
		c.Replicas = n
	}
	switch c.Verb {
	case Drain, Cordon, Uncordon:
		if len(names) != 1 {
			return Change{}, wrong
		}
		c.Name = strings.TrimPrefix(strings.TrimPrefix(names[0], "node/"), "nodes/")
		return c, nil
	case Scale, Delete:
		if c.Kind, c.Name = split(names); c.Name == "" || c.Verb == Scale && c.Replicas < 0 {
			return Change{}, wrong
		}
		return c, nil
	}
	return Change{}, wrong
}

// split reads TYPE NAME or TYPE/NAME; the name is "" for anything else.
func split(names []string) (kind, name string) {
	switch len(names) {
	case 1:
		kind, name, _ = strings.Cut(names[0], "/")
	case 2:
		kind, name = names[0], names[1]
	}
	return kind, name
}

// String writes the change as a sentence has it.
func (c Change) String() string {
	switch c.Verb {
	case Scale:
		return fmt.Sprintf("scale %s/%s to %d", strings.ToLower(c.Kind), c.Name, c.Replicas)
	case Delete:
		return fmt.Sprintf("delete %s/%s", strings.ToLower(c.Kind), c.Name)
	case Apply:
		var names []string
		for _, o := range c.Objects {
			names = append(names, strings.ToLower(o.GetKind())+"/"+o.GetName())
		}
		const most = 4
		if len(names) > most {
			names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
		}
		return "apply " + strings.Join(names, ", ")
	}
	return string(c.Verb) + " node " + c.Name
}
