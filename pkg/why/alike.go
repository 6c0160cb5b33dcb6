package why

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// maxAlike is how many objects are asked for their causes; the others are alike in practice.
const maxAlike = 10

// Group is objects with the same cause: their first ones have the same code.
type Group struct {
	Objects []Object
	// Causes are those of the first object; none if it is well, or if nothing is known.
	Causes []Cause
}

// Alike asks objects for their causes and puts those with the same one together, in the order of the objects. It asks
// the first ten and leaves the others out.
func Alike(ctx context.Context, c *Case, objects []Object) (groups []*Group, err error) {
	for _, o := range objects[:min(len(objects), maxAlike)] {
		causes, err := c.Causes(ctx, o)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(groups, func(g *Group) bool { return g.code() == (&Group{Causes: causes}).code() })
		if i < 0 {
			groups = append(groups, &Group{Causes: causes})
			i = len(groups) - 1
		}
		groups[i].Objects = append(groups[i].Objects, o)
	}
	return groups, nil
}

// code is that of the group's cause, empty if there is none.
func (g *Group) code() string {
	if len(g.Causes) == 0 {
		return ""
	}
	return g.Causes[0].Code
}

// Remaining says that the objects of the group, which are of one kind, are still there. things are several of the kind:
// "pods".
func (g *Group) Remaining(things string) string {
	switch {
	case len(g.Objects) == 1:
		return fmt.Sprintf("%s is still there.", g.Objects[0])
	case len(g.Causes) == 0:
		return fmt.Sprintf("%d %s are still there: %s.", len(g.Objects), things, And(g.names()))
	}
	return fmt.Sprintf("%d %s are still there for the same cause: %s.", len(g.Objects), things, And(g.names()))
}

func (g *Group) names() (names []string) {
	for _, o := range g.Objects {
		names = append(names, o.Name)
	}
	return names
}

// NotReady explains pods that do not serve, since they are not ready or are being deleted: those with the same cause
// together, the most frequent cause first.
func NotReady(ctx context.Context, c *Case, pods []*corev1.Pod) (causes []Cause, err error) {
	var objects []Object
	going := map[Object]*corev1.Pod{}
	for _, p := range pods {
		o := ObjectOf("", "Pod", p)
		if objects = append(objects, o); p.DeletionTimestamp != nil {
			going[o] = p
		}
	}
	groups, err := Alike(ctx, c, objects)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(groups, func(a, b *Group) int {
		if x, y := underWay(a.code()), underWay(b.code()); x != y {
			if x {
				return 1
			}
			return -1
		}
		return len(b.Objects) - len(a.Objects)
	})
	for _, g := range groups {
		if len(g.Causes) == 0 {
			continue
		}
		first := g.Objects[0]
		state, seen := "not ready", See(first, `.status.conditions[?(@.type=="Ready")].status`, "False")
		if p := going[first]; p != nil {
			state, seen = "being deleted", SeeDeleted(first, p)
		}
		text := fmt.Sprintf("Pod %s is %s.", first.Name, state)
		if n := len(g.Objects); n > 1 {
			text = fmt.Sprintf("%s are %s for the same cause: %s.", Count(n, "pod"), state, And(g.names()))
		}
		causes = append(causes, Cause{Code: "PodsNotReady", Text: text, Because: g.Causes[:1],
			Evidence: []Evidence{seen}})
	}
	return causes, nil
}

// underWay reports whether a code is of what goes by itself when nothing is wrong: it explains nothing while something
// else has a fault.
func underWay(code string) bool {
	return slices.Contains([]string{"NotSeenByKubelet", "PullingImage", "Starting", "ReadinessNotYet"}, code)
}

// UnderWay reports whether the first causes end at something that goes by itself when nothing is wrong.
func UnderWay(causes []Cause) bool {
	if len(causes) == 0 {
		return false
	}
	if b := causes[0].Because; len(b) > 0 {
		return UnderWay(b)
	}
	return underWay(causes[0].Code)
}
