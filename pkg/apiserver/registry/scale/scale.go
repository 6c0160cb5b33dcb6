// Package scale is the scale subresource: an object's replicas seen and set as an autoscaling/v1 Scale.
package scale

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"bonsai/pkg/apiserver/registry"
)

// Adapter shows where one kind keeps its numbers.
type Adapter struct {
	// Replicas are the wanted replicas, SetReplicas makes them n. An object without them has no Scale
	// (registry.NoReplicasError), but can be given one.
	Replicas    func(obj runtime.Object) (int32, error)
	SetReplicas func(obj runtime.Object, n int32) error
	// Observed are those there are; Selector is the label selector of its pods as text, "" for none.
	Observed func(obj runtime.Object) (int32, error)
	Selector func(obj runtime.Object) (string, error)
	// Paths are where the wanted replicas are (spec, replicas), by the names of all versions of the kind.
	Paths map[string][]string
	// Validated: what the replicas may be, and which object is meant, is up to the object's own validation and store
	// alone.
	Validated bool
}

// Adapters are the kinds that can be scaled, by resource.
func Adapters() map[schema.GroupResource]Adapter {
	return map[schema.GroupResource]Adapter{
		{Group: "apps", Resource: "deployments"}: adapt(
			func(o *appsv1.Deployment) (**int32, int32, *metav1.LabelSelector) {
				return &o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector
			}),
		{Group: "apps", Resource: "replicasets"}: adapt(
			func(o *appsv1.ReplicaSet) (**int32, int32, *metav1.LabelSelector) {
				return &o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector
			}),
		{Group: "apps", Resource: "statefulsets"}: adapt(
			func(o *appsv1.StatefulSet) (**int32, int32, *metav1.LabelSelector) {
				return &o.Spec.Replicas, o.Status.Replicas, o.Spec.Selector
			}),
		{Resource: "replicationcontrollers"}: adapt(
			func(o *corev1.ReplicationController) (**int32, int32, *metav1.LabelSelector) {
				return &o.Spec.Replicas, o.Status.Replicas, &metav1.LabelSelector{MatchLabels: o.Spec.Selector}
			}),
	}
}

func adapt[T runtime.Object](look func(T) (**int32, int32, *metav1.LabelSelector)) Adapter {
	return Adapter{
		Replicas: func(obj runtime.Object) (int32, error) {
			if n, _, _ := look(obj.(T)); *n != nil {
				return **n, nil
			}
			return 1, nil
		},
		SetReplicas: func(obj runtime.Object, n int32) error {
			at, _, _ := look(obj.(T))
			*at = &n
			return nil
		},
		Observed: func(obj runtime.Object) (int32, error) { _, n, _ := look(obj.(T)); return n, nil },
		Selector: func(obj runtime.Object) (string, error) {
			_, _, s := look(obj.(T))
			selector, err := metav1.LabelSelectorAsSelector(s)
			if err != nil {
				return "", err
			}
			return selector.String(), nil
		},
		Paths: map[string][]string{"v1": {"spec", "replicas"}},
	}
}

// paths are Paths as managedFields name versions and fields.
func (a *Adapter) paths(group string) managedfields.ResourcePathMappings {
	out := managedfields.ResourcePathMappings{}
	for version, names := range a.Paths {
		path := make(fieldpath.Path, len(names))
		for i := range names {
			path[i] = fieldpath.PathElement{FieldName: &names[i]}
		}
		out[schema.GroupVersion{Group: group, Version: version}.String()] = path
	}
	return out
}

// REST is the scale of one resource.
type REST struct {
	stores   registry.Stores
	resource schema.GroupResource
	adapter  Adapter
}

var _ registry.ReadWriter = (*REST)(nil)

// New returns the scale of resource, or an error if no adapter knows it.
func New(stores registry.Stores, resource schema.GroupResource) (*REST, error) {
	a, ok := Adapters()[resource]
	if !ok {
		return nil, fmt.Errorf("scale of %s: no adapter for it", resource)
	}
	return NewWith(stores, resource, a), nil
}

// NewWith returns the scale of a resource whose numbers a shows.
func NewWith(stores registry.Stores, resource schema.GroupResource, a Adapter) *REST {
	return &REST{stores: stores, resource: resource, adapter: a}
}

// New returns an empty Scale.
func (r *REST) New() runtime.Object { return &autoscalingv1.Scale{} }

// Get reads the object and returns its Scale.
func (r *REST) Get(ctx context.Context, ns, name string) (runtime.Object, error) {
	store, err := r.store()
	if err != nil {
		return nil, err
	}
	obj, err := store.Get(ctx, ns, name)
	if err != nil {
		return nil, err
	}
	return r.answer(obj)
}

// answer is the Scale that clients get.
func (r *REST) answer(obj runtime.Object) (runtime.Object, error) {
	s, err := r.scaleOf(obj)
	if none := (*registry.NoReplicasError)(nil); errors.As(err, &none) {
		err = apierrors.NewInternalError(none)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// store is that of the resource, if it is served at this moment.
func (r *REST) store() (registry.Store, error) {
	if s := r.stores.Store(r.resource); s != nil {
		return s, nil
	}
	return nil, apierrors.NewServiceUnavailable(fmt.Sprintf("%s are not served", r.resource))
}

// Update sets the wanted replicas. The object's own strategy and validation apply; a Scale that names another UID or
// resourceVersion than the object has is refused with 409.
//
// All happens in the change of the object's update, so the Scale is made of the object that is written over. The store
// may run it several times, and admission then sees each attempt's Scale. The write itself does not ask admission: the
// request was for the Scale.
func (r *REST) Update(ctx context.Context, ns, name string, change registry.PartChange,
	opts *metav1.UpdateOptions) (runtime.Object, error) {
	store, err := r.store()
	if err != nil {
		return nil, err
	}
	obj, err := store.Admitted().Update(ctx, ns, name, "", func(current runtime.Object) (runtime.Object, error) {
		was, err := r.scaleOf(current)
		if none := (*registry.NoReplicasError)(nil); err != nil && !errors.As(err, &none) {
			return nil, err
		}
		fields, err := newFields(current, registry.VersionAsked(ctx, current), r.adapter.paths(r.resource.Group))
		if err != nil {
			return nil, err
		}
		if was.ManagedFields, err = fields.ofScale(); err != nil {
			return nil, err
		}
		changed, err := change.Make(was.DeepCopy())
		if err != nil {
			return nil, err
		}
		wanted, ok := changed.(*autoscalingv1.Scale)
		if !ok {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("wrong object passed to Scale update: %T", changed))
		}
		if err := r.check(was, wanted); err != nil {
			return nil, err
		}
		if err := r.adapter.SetReplicas(current, wanted.Spec.Replicas); err != nil {
			return nil, err
		}
		if err := fields.take(wanted); err != nil {
			return nil, err
		}
		will, err := r.scaleOf(current)
		if err != nil {
			return nil, err
		}
		was.ManagedFields = nil // as those of will, which belong to the parent
		return current, change.Validate(will, was)
	}, opts)
	if err != nil {
		return nil, err
	}
	return r.answer(obj)
}

// check refuses a Scale of another object, of an older state, or with a number below 0 where the object's validation
// does not.
func (r *REST) check(was, wanted *autoscalingv1.Scale) error {
	if wanted.Namespace != "" && wanted.Namespace != was.Namespace {
		return apierrors.NewBadRequest(
			"the namespace of the provided object does not match the namespace sent on the request")
	}
	if wanted.Name != was.Name {
		return apierrors.NewBadRequest(
			fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", wanted.Name, was.Name))
	}
	if wanted.UID != "" && wanted.UID != was.UID {
		if r.adapter.Validated {
			return &registry.OtherUID{Want: wanted.UID, Have: was.UID} // the store says it, in its own words
		}
		scales := schema.GroupResource{Group: r.resource.Group, Resource: r.resource.Resource + "/scale"}
		return apierrors.NewConflict(scales, was.Name, &registry.OtherUID{Want: wanted.UID, Have: was.UID})
	}
	if rv := wanted.ResourceVersion; rv != "" && rv != was.ResourceVersion {
		return apierrors.NewConflict(r.resource, was.Name,
			fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	if n := wanted.Spec.Replicas; n < 0 && !r.adapter.Validated {
		errs := field.ErrorList{
			field.Invalid(field.NewPath("spec", "replicas"), n,
				"must be greater than or equal to 0").WithOrigin("minimum")}
		return apierrors.NewInvalid(schema.GroupKind{Group: autoscalingv1.GroupName, Kind: "Scale"}, was.Name, errs)
	}
	return nil
}

// scaleOf is the Scale of an object; with a registry.NoReplicasError, one that lacks only the wanted replicas.
func (r *REST) scaleOf(obj runtime.Object) (*autoscalingv1.Scale, error) {
	m, ok := obj.(metav1.Object)
	if !ok {
		return nil, fmt.Errorf("scale of %s: %T has no metadata", r.resource, obj)
	}
	replicas, missing := r.adapter.Replicas(obj)
	if none := (*registry.NoReplicasError)(nil); missing != nil && !errors.As(missing, &none) {
		return nil, missing
	}
	observed, err := r.adapter.Observed(obj)
	if err != nil {
		return nil, err
	}
	selector, err := r.adapter.Selector(obj)
	if err != nil {
		return nil, fmt.Errorf("scale of %s %s/%s: %w", r.resource, m.GetNamespace(), m.GetName(), err)
	}
	return &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{APIVersion: autoscalingv1.SchemeGroupVersion.String(), Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{
			Name: m.GetName(), Namespace: m.GetNamespace(), UID: m.GetUID(),
			ResourceVersion: m.GetResourceVersion(), CreationTimestamp: m.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: replicas},
		Status: autoscalingv1.ScaleStatus{Replicas: observed, Selector: selector},
	}, missing
}
