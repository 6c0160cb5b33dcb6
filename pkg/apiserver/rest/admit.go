package rest

import (
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// admitConnect asks admission about a connection to a subresource with opts, and returns the options that it left.
func (x *exchange) admitConnect(opts runtime.Object) (runtime.Object, error) {
	a := x.attributes(admission.Attributes{Operation: admission.Connect, Name: x.info.Name, Object: opts})
	if err := x.mutate(&a); err != nil {
		return nil, err
	}
	return a.Object, x.validate(&a)
}

// creation describes a POST that is answered without a store.
func (x *exchange) creation(name string, obj runtime.Object, opts *metav1.CreateOptions) admission.Attributes {
	return x.attributes(admission.Attributes{
		Operation: admission.Create, Name: name, Object: obj, Options: opts, DryRun: len(opts.DryRun) > 0,
	})
}

// partChange adds admission to a change of a subresource's object. change makes the new object from the current one.
// Both functions run again for each attempt of the write, Make before Validate. Webhooks therefore see each attempt,
// with the object that it began with.
func partChange(
	x *exchange,
	opts *metav1.UpdateOptions, change func(current runtime.Object) (runtime.Object, error),
) registry.PartChange {
	attributes := func(obj, old runtime.Object) admission.Attributes {
		return x.attributes(admission.Attributes{
			Operation: admission.Update, Name: x.info.Name, Object: obj, OldObject: old, Options: opts,
			DryRun: len(opts.DryRun) > 0,
		})
	}
	return registry.PartChange{
		Make: func(current runtime.Object) (runtime.Object, error) {
			obj, err := change(current)
			if err != nil {
				return nil, err
			}
			a := attributes(obj, current)
			if err := x.mutate(&a); err != nil {
				return nil, err
			}
			return a.Object, nil
		},
		Validate: func(obj, old runtime.Object) error {
			a := attributes(obj, old)
			return x.validate(&a)
		},
	}
}

// attributes completes a with the fields that are the same for all requests.
func (x *exchange) attributes(a admission.Attributes) admission.Attributes {
	a.Kind, a.Resource, a.Subresource = x.res.GVK, x.res.GVR(), x.info.Subresource
	if sub := x.res.Subresource(a.Subresource); sub != nil && sub.GVK != nil {
		a.Kind = *sub.GVK
	}
	a.Object.GetObjectKind().SetGroupVersionKind(a.Kind)
	a.RequestKind, a.RequestResource = a.Kind, a.Resource
	a.Namespace, a.User, a.Warn = x.info.Namespace, request.UserFrom(x.r.Context()), x.warn
	return a
}

// mutate calls the mutating plug-ins, which may replace a.Object by another object of the same Go type. Another type
// would be a fault of this server. It ends here as a 500, before code that expects the type meets it.
func (x *exchange) mutate(a *admission.Attributes) error {
	if x.Admission == nil {
		return nil
	}
	was := reflect.TypeOf(a.Object)
	if err := x.Admission.Admit(x.r.Context(), a); err != nil {
		return err
	}
	if reflect.TypeOf(a.Object) != was {
		return apierrors.NewInternalError(fmt.Errorf("admission replaced a %s by a %T", was, a.Object))
	}
	return nil
}

// validate calls the validating plug-ins.
func (x *exchange) validate(a *admission.Attributes) error {
	if x.Admission == nil {
		return nil
	}
	return x.Admission.Validate(x.r.Context(), a)
}
