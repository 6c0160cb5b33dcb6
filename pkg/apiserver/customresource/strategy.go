package customresource

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/apiextensions/customresource"
	"bonsai/api/resources"
)

// complete fills in a version's defaults.
func complete(l *customresource.Lazy, obj runtime.Object) {
	if t, err := l.Get(); err == nil {
		t.Default(obj.(*unstructured.Unstructured))
	}
}

// fit makes a stored object what its version's schema says by now.
func fit(l *customresource.Lazy, obj runtime.Object) {
	t, err := l.Get()
	if err != nil {
		return
	}
	u := obj.(*unstructured.Unstructured)
	_, _ = t.Prune(u) // what it cannot prune stays as stored; writes report the error
	t.Default(u)
}

// rulesTime is how long the rules may be asked about one object: the budget of cost that they have besides is spent in
// a second or a few, but there are expressions that take longer for the same cost.
const rulesTime = 10 * time.Second

// validate returns the faults of a write by the rules of a version, and warnings about the faults that it keeps; old is
// nil at a create.
func validate(ctx context.Context, l *customresource.Lazy, subresource string, obj,
	old runtime.Object) (faults field.ErrorList, kept []string) {
	t, err := l.Get()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}, nil
	}
	u := obj.(*unstructured.Unstructured)
	ctx, cancel := context.WithTimeout(ctx, rulesTime)
	defer cancel()
	switch {
	case old == nil:
		return t.Validate(ctx, u), nil
	case subresource == "status":
		return t.ValidateStatusUpdate(ctx, u, old.(*unstructured.Unstructured))
	}
	return t.ValidateUpdate(ctx, u, old.(*unstructured.Unstructured))
}

// strategy is the resources.Strategy of objects of the version that l is of.
func strategy(ctx context.Context, l *customresource.Lazy) resources.Strategy {
	return resources.Strategy{
		NeedsVersion: true,
		Default:      func(obj runtime.Object) { complete(l, obj) },
		PrepareCreate: func(obj runtime.Object) {
			if t, err := l.Get(); err == nil {
				t.PrepareCreate(obj.(*unstructured.Unstructured))
			}
		},
		PrepareUpdate: func(obj, old runtime.Object) {
			if t, err := l.Get(); err == nil {
				t.PrepareUpdate(obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured))
			}
		},
		Validate: func(obj runtime.Object) field.ErrorList {
			faults, _ := validate(ctx, l, "", obj, nil)
			return faults
		},
		ValidateUpdate: func(obj, old runtime.Object) (field.ErrorList, []string) {
			return validate(ctx, l, "", obj, old)
		},
		Warnings: finalizerWarnings,
		SpecChanged: func(obj, old runtime.Object) bool {
			t, err := l.Get()
			return err == nil && t.SpecChanged(obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured))
		},
	}
}

// statusStrategy is that of the status subresource.
func statusStrategy(ctx context.Context, l *customresource.Lazy) resources.Strategy {
	return resources.Strategy{
		PrepareUpdate: func(obj, old runtime.Object) {
			if t, err := l.Get(); err == nil {
				t.PrepareStatusUpdate(obj.(*unstructured.Unstructured), old.(*unstructured.Unstructured))
			}
		},
		ValidateUpdate: func(obj, old runtime.Object) (field.ErrorList, []string) {
			return validate(ctx, l, "status", obj, old)
		},
		Resets: []string{"spec", "metadata"}, // no Warnings: it keeps the finalizers
	}
}
