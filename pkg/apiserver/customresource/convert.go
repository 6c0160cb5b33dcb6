package customresource

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/apiextensions/customresource"
)

// Hook is a definition's conversion webhook.
type Hook interface {
	// Call posts a ConversionReview and returns the answer, which is at most limit bytes long.
	Call(ctx context.Context, body []byte, timeout time.Duration, limit int64) ([]byte, error)
}

// converter converts the objects of one definition between its versions.
type converter struct {
	// ctx is what conversions end with that no request waits for: those of stored objects.
	ctx  context.Context
	crd  *v1.CustomResourceDefinition
	hook Hook // nil: versions differ by their name only
	uid  func() string
	// observe receives how long a call of the webhook took, and how it ended.
	observe func(took time.Duration, err error)
	now     func() time.Time
}

// to returns what converts an object to gvk, from whatever version it names. of, if not nil, prunes it.
func (c converter) to(gvk schema.GroupVersionKind, of *customresource.Lazy) func(context.Context,
	runtime.Object) (runtime.Object, error) {
	all := c.allTo(gvk, of)
	return func(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
		out, err := all(ctx, []runtime.Object{obj})
		if err != nil {
			return nil, err
		}
		return out[0], nil
	}
}

// allTo is to for many objects at once.
func (c converter) allTo(gvk schema.GroupVersionKind, of *customresource.Lazy) func(context.Context,
	[]runtime.Object) ([]runtime.Object, error) {
	return func(ctx context.Context, objs []runtime.Object) ([]runtime.Object, error) {
		out, err := c.convert(ctx, gvk.GroupVersion(), objs)
		if err != nil || of == nil {
			return out, err
		}
		t, err := of.Get()
		if err != nil {
			return nil, err
		}
		for _, obj := range out {
			_, _ = t.Prune(obj.(*unstructured.Unstructured)) // what it cannot prune stays
		}
		return out, nil
	}
}

// upgrade is the resources.Row.Upgrade of objects of gvk.
func (c converter) upgrade(gvk schema.GroupVersionKind) func(runtime.Object) (runtime.Object, error) {
	if c.hook == nil {
		return nil
	}
	convert := c.to(gvk, nil)
	return func(obj runtime.Object) (runtime.Object, error) { return convert(c.ctx, obj) }
}

// convert makes objects of the version to of objs, which it may change. Those that are of it already stay as they are.
func (c converter) convert(ctx context.Context, to schema.GroupVersion, objs []runtime.Object) ([]runtime.Object,
	error) {
	var others []*unstructured.Unstructured
	var at []int
	for i, obj := range objs {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, fmt.Errorf("convert %s: %T has a Go type", c.crd.Name, obj)
		}
		switch from := u.GroupVersionKind().GroupVersion(); {
		case from == to:
		case c.version(from) == nil:
			return nil, fmt.Errorf("request to convert CR from an invalid group/version: %s", from)
		case c.hook == nil || empty(u):
			u.SetAPIVersion(to.String())
		default:
			others, at = append(others, u), append(at, i)
		}
	}
	if len(others) == 0 {
		return objs, nil
	}
	converted, err := c.ask(ctx, to, others)
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		objs[i] = converted[n]
	}
	return objs, nil
}

// empty tells that an object says nothing but its kind: server-side apply begins with such a one, and no webhook can
// know more of it.
func empty(u *unstructured.Unstructured) bool {
	for key := range u.Object {
		if key != "apiVersion" && key != "kind" {
			return false
		}
	}
	return true
}

// version returns a version of the definition, nil if gv is none of it.
func (c converter) version(gv schema.GroupVersion) *v1.CustomResourceDefinitionVersion {
	if gv.Group != c.crd.Spec.Group {
		return nil
	}
	for i := range c.crd.Spec.Versions {
		if v := &c.crd.Spec.Versions[i]; v.Name == gv.Version {
			return v
		}
	}
	return nil
}

// errNoHook is for a definition that converts by webhook, and says none.
var errNoHook = errors.New("no webhook is configured")
