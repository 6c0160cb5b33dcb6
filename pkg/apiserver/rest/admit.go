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

// partChange has admission take part in a change of the object of a subresource, which change makes of the current one.
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

// attributes completes a with what all requests have.
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

// mutate has the plug-ins that may change a.Object do so.
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

// validate asks the plug-ins that judge.
func (x *exchange) validate(a *admission.Attributes) error {
	if x.Admission == nil {
		return nil
	}
	return x.Admission.Validate(x.r.Context(), a)
}
