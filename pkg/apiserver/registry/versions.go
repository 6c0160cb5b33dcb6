package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/resources"
)

// rules returns the version of ctx's request if that has rules of its own: the stored kind's checks and
// defaults are then left out.
func (g *Generic) rules(ctx context.Context) *resources.Version {
	asked := g.requested(callerFrom(ctx)).Version
	for i := range g.Row.Versions {
		if v := &g.Row.Versions[i]; v.Name == asked && v.Validate != nil {
			return v
		}
	}
	return nil
}

// defaults returns what completes an object of the stored kind that ctx's request writes; nil: nothing does.
func (g *Generic) defaults(ctx context.Context, s *resources.Strategy) func(runtime.Object) {
	switch {
	case g.rules(ctx) != nil: // the version has completed it, and the next reader sees it as the stored kind has it
		return nil
	case s != nil && s.Default != nil:
		return s.Default
	}
	return g.Row.Strategy.Default
}

// versioned is a write as a version with rules of its own sees it: with that version's defaults, and without what it
// does not know.
type versioned struct {
	*resources.Version
	obj, old runtime.Object // in the version; old is nil at a create
}

// asVersion is a write of the stored kind in the version that ctx's request names; nil: that has no rules of its own.
// old is nil at a create.
func (g *Generic) asVersion(ctx context.Context, obj, old runtime.Object) (*versioned, error) {
	v := g.rules(ctx)
	if v == nil {
		return nil, nil
	}
	out := &versioned{Version: v, obj: obj, old: old}
	if v.FromHub == nil {
		return out, nil
	}
	for _, o := range []*runtime.Object{&out.obj, &out.old} {
		if *o == nil {
			continue
		}
		seen, err := v.FromHub(ctx, (*o).DeepCopyObject())
		if err != nil {
			return nil, err
		}
		*o = seen
	}
	return out, nil
}
