package rest

import (
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/request"
)

// admitConnect asks admission about a connection to a subresource with opts, and returns the options that it left.
func (x *exchange) admitConnect(opts runtime.Object) (runtime.Object, error) {
	return x.admit(admission.Attributes{Operation: admission.Connect, Name: x.info.Name, Object: opts})
}

// admitCreate asks admission about a POST that is answered without a store, and returns the object that it left.
func (x *exchange) admitCreate(name string, obj runtime.Object, opts *metav1.CreateOptions) (runtime.Object, error) {
	return x.admit(admission.Attributes{Operation: admission.Create, Name: name, Object: obj, Options: opts, DryRun: len(opts.DryRun) > 0})
}

// admitUpdate asks admission about the change of the object of a subresource from old to obj, and returns what it left of it.
func (x *exchange) admitUpdate(obj, old runtime.Object, opts *metav1.UpdateOptions) (runtime.Object, error) {
	return x.admit(admission.Attributes{Operation: admission.Update, Name: x.info.Name, Object: obj, OldObject: old, Options: opts, DryRun: len(opts.DryRun) > 0})
}

// admit completes a with what all requests have, and returns the object that the plug-ins left.
func (x *exchange) admit(a admission.Attributes) (runtime.Object, error) {
	a.Kind, a.Resource, a.Subresource = x.res.GVK, x.res.GVR(), x.info.Subresource
	if sub := x.res.Subresource(a.Subresource); sub != nil && sub.GVK != nil {
		a.Kind = *sub.GVK
	}
	a.Object.GetObjectKind().SetGroupVersionKind(a.Kind)
	if x.Admission == nil {
		return a.Object, nil
	}
	ctx, was := x.r.Context(), reflect.TypeOf(a.Object)
	a.RequestKind, a.RequestResource = a.Kind, a.Resource
	a.Namespace, a.User, a.Warn = x.info.Namespace, request.UserFrom(ctx), x.warn
	if err := x.Admission.Admit(ctx, &a); err != nil {
		return nil, err
	}
	if reflect.TypeOf(a.Object) != was {
		return nil, apierrors.NewInternalError(fmt.Errorf("admission replaced a %s by a %T", was, a.Object))
	}
	return a.Object, x.Admission.Validate(ctx, &a)
}
