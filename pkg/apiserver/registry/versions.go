package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

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

// asRead is obj as its next reader sees it: what another version wrote lacks the defaults of the stored one, which old objects have once they are read.
func (g *Generic) asRead(ctx context.Context, obj runtime.Object) runtime.Object {
	complete := g.Row.Strategy.Default
	if complete == nil || g.rules(ctx) == nil {
		return obj
	}
	seen := obj.DeepCopyObject()
	complete(seen)
	return seen
}

// checkAs is what a version with rules of its own says of an object of the stored kind; old is nil at a create.
func checkAs(ctx context.Context, v *resources.Version, subresource string, obj, old runtime.Object) (field.ErrorList, error) {
	inVersion := func(obj runtime.Object) (runtime.Object, error) {
		if obj == nil || v.FromHub == nil {
			return obj, nil
		}
		return v.FromHub(ctx, obj.DeepCopyObject())
	}
	seen, err := inVersion(obj)
	if err != nil {
		return nil, err
	}
	before, err := inVersion(old)
	if err != nil {
		return nil, err
	}
	return v.Validate(subresource, seen, before), nil
}
