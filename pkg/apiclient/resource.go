package apiclient

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Object is a pointer to one of the API's types.
type Object interface {
	metav1.Object
	runtime.Object
}

// Resource is typed access to one resource. Errors are the API server's Status errors (apierrors.IsNotFound and so on).
// A namespace of "" is for cluster-scoped kinds, and for lists over all namespaces.
type Resource[T Object] struct {
	client *Client
	gvr    schema.GroupVersionResource
	item   T
}

// NewResource returns access to the resource of that name, whose objects are as item, which stays empty. The client's
// scheme must know the kind and, if it is listed, its list.
func NewResource[T Object](c *Client, gv schema.GroupVersion, name string, item T) *Resource[T] {
	return &Resource[T]{client: c, gvr: gv.WithResource(name), item: item}
}

// GVR says where the kind is served.
func (r *Resource[T]) GVR() schema.GroupVersionResource { return r.gvr }

// New returns an empty object of the kind.
func (r *Resource[T]) New() T { return r.item.DeepCopyObject().(T) }

// do sends what build makes of the group's REST client and decodes the answer into a fresh object.
func (r *Resource[T]) do(ctx context.Context, build func(rest.Interface) *rest.Request) (T, error) {
	out := r.New()
	c, err := r.client.group(r.gvr.GroupVersion())
	if err != nil {
		return out, err
	}
	return out, build(c).Do(ctx).Into(out)
}

func (r *Resource[T]) on(req *rest.Request, ns string) *rest.Request {
	return req.NamespaceIfScoped(ns, ns != "").Resource(r.gvr.Resource)
}

// Get reads the newest state from the server, past every cache of ours.
func (r *Resource[T]) Get(ctx context.Context, ns, name string) (T, error) {
	return r.do(ctx, func(c rest.Interface) *rest.Request { return r.on(c.Get(), ns).Name(name) })
}

// Create makes obj in its namespace and returns it as stored.
func (r *Resource[T]) Create(ctx context.Context, obj T) (T, error) {
	made, err := r.do(ctx, func(c rest.Interface) *rest.Request {
		return r.on(c.Post(), obj.GetNamespace()).Body(obj)
	})
	if err == nil {
		r.created(ctx, made)
	}
	return made, err
}

// Created receives an object that was made, with its kind and its resource.
type Created func(kind schema.GroupVersionKind, resource string, made metav1.Object)

type createdKey struct{}

// WithCreated returns a context with which f receives each object that Create makes.
func WithCreated(ctx context.Context, f Created) context.Context {
	return context.WithValue(ctx, createdKey{}, f)
}

func (r *Resource[T]) created(ctx context.Context, made T) {
	f, ok := ctx.Value(createdKey{}).(Created)
	if !ok {
		return
	}
	if kinds, _, err := r.client.scheme.ObjectKinds(made); err == nil {
		f(kinds[0], r.gvr.Resource, made)
	}
}

// GetSub reads a subresource of the named object into out.
func (r *Resource[T]) GetSub(ctx context.Context, ns, name, sub string, out runtime.Object) error {
	c, err := r.client.group(r.gvr.GroupVersion())
	if err != nil {
		return err
	}
	return r.on(c.Get(), ns).Name(name).SubResource(sub).Do(ctx).Into(out)
}

// CreateSub posts body to a subresource of the named object and decodes the answer into out.
func (r *Resource[T]) CreateSub(ctx context.Context, ns, name, sub string, body, out runtime.Object) error {
	c, err := r.client.group(r.gvr.GroupVersion())
	if err != nil {
		return err
	}
	return r.on(c.Post(), ns).Name(name).SubResource(sub).Body(body).Do(ctx).Into(out)
}

// Update replaces obj; its resourceVersion must still be the newest.
func (r *Resource[T]) Update(ctx context.Context, obj T) (T, error) {
	return r.do(ctx, func(c rest.Interface) *rest.Request {
		return r.on(c.Put(), obj.GetNamespace()).Name(obj.GetName()).Body(obj)
	})
}

// UpdateSub replaces what the subresource (status, finalize, …) covers of obj.
func (r *Resource[T]) UpdateSub(ctx context.Context, obj T, sub string) (T, error) {
	return r.do(ctx, func(c rest.Interface) *rest.Request {
		return r.on(c.Put(), obj.GetNamespace()).Name(obj.GetName()).SubResource(sub).Body(obj)
	})
}

// UpdateStatus replaces the status of obj; its resourceVersion must still be the newest.
func (r *Resource[T]) UpdateStatus(ctx context.Context, obj T) (T, error) {
	return r.UpdateSub(ctx, obj, "status")
}

// Patch applies a patch of the given type to the object or to its subresource.
func (r *Resource[T]) Patch(ctx context.Context, ns, name string, t types.PatchType, patch []byte, sub ...string) (T,
	error) {
	return r.do(ctx, func(c rest.Interface) *rest.Request {
		return r.on(c.Patch(t), ns).Name(name).SubResource(sub...).Body(patch)
	})
}

// Apply applies a configuration to the object or to its subresource as manager, and takes over what others have set of
// it.
func (r *Resource[T]) Apply(ctx context.Context, ns, name, manager string, config []byte, sub ...string) (T, error) {
	return r.do(ctx, func(c rest.Interface) *rest.Request {
		return r.on(c.Patch(types.ApplyPatchType), ns).Name(name).SubResource(sub...).Param("fieldManager",
			manager).Param("force", "true").Body(config)
	})
}

// Delete asks for the named object to go, if it is still the one with this uid ("" is any).
func (r *Resource[T]) Delete(ctx context.Context, ns, name string, uid types.UID) error {
	opts := metav1.DeleteOptions{}
	if uid != "" {
		opts.Preconditions = metav1.NewUIDPreconditions(string(uid))
	}
	return r.DeleteWith(ctx, ns, name, opts)
}

// DeleteWith is Delete with all options in the caller's hands.
func (r *Resource[T]) DeleteWith(ctx context.Context, ns, name string, opts metav1.DeleteOptions) error {
	c, err := r.client.group(r.gvr.GroupVersion())
	if err != nil {
		return err
	}
	return r.on(c.Delete(), ns).Name(name).Body(&opts).Do(ctx).Error()
}

// DeleteSelected deletes the matching objects.
func (r *Resource[T]) DeleteSelected(ctx context.Context, ns string, opts metav1.ListOptions) error {
	c, err := r.client.group(r.gvr.GroupVersion())
	if err != nil {
		return err
	}
	return r.on(c.Delete(), ns).VersionedParams(&opts, metav1.ParameterCodec).Do(ctx).Error()
}

// List reads the matching objects from the server, past every cache of ours.
func (r *Resource[T]) List(ctx context.Context, ns string, opts metav1.ListOptions) ([]T, error) {
	list, err := r.client.list(ctx, r.gvr, ns, opts)
	if err != nil {
		return nil, err
	}
	var out []T
	err = meta.EachListItem(list, func(o runtime.Object) error {
		out = append(out, o.(T))
		return nil
	})
	return out, err
}

// Watch returns the changes of the matching objects after opts.ResourceVersion; "" begins with the existing objects.
// The server may end it at any time: use Follow to see everything.
func (r *Resource[T]) Watch(ctx context.Context, ns string, opts metav1.ListOptions) (watch.Interface, error) {
	return r.client.watch(ctx, r.gvr, ns, opts)
}

// ListWatch lists and watches the selected objects, for a reflector or an informer.
func (r *Resource[T]) ListWatch(s Selection) cache.ListerWatcher { return r.client.ListWatch(r.gvr, s) }
