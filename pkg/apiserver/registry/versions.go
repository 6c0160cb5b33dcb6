package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

// rules returns the version of ctx's request if that has rules of its own: the stored kind's are then not asked.
func (g *Generic) rules(ctx context.Context) *resources.Version {
	asked := g.requested(callerFrom(ctx)).Version
	for i := range g.Row.Versions {
		if v := &g.Row.Versions[i]; v.Name == asked && v.Validate != nil {
			return v
		}
	}
	return nil
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
