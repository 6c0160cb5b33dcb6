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

// admitConnect asks admission about a connection to a subresource.
func (x *exchange) admitConnect() error {
	return x.admit(&admission.Attributes{Operation: admission.Connect, Name: x.info.Name})
}

// admitCreate asks admission about a POST that is answered without a store, and returns the object that it left.
func (x *exchange) admitCreate(name string, obj runtime.Object, opts *metav1.CreateOptions) (runtime.Object, error) {
	a := &admission.Attributes{Operation: admission.Create, Name: name, Object: obj, Options: opts, DryRun: len(opts.DryRun) > 0}
	if err := x.admit(a); err != nil {
		return nil, err
	}
	if reflect.TypeOf(a.Object) != reflect.TypeOf(obj) {
		return nil, apierrors.NewInternalError(fmt.Errorf("admission replaced a %T by a %T", obj, a.Object))
	}
	return a.Object, nil
}

func (x *exchange) admit(a *admission.Attributes) error {
	if x.Admission == nil {
		return nil
	}
	ctx := x.r.Context()
	a.Kind, a.Resource, a.Subresource = x.res.GVK, x.res.GVR(), x.info.Subresource
	if sub := x.res.Subresource(a.Subresource); sub != nil && sub.GVK != nil {
		a.Kind = *sub.GVK
	}
	a.Namespace, a.User, a.Warn = x.info.Namespace, request.UserFrom(ctx), x.warn
	if err := x.Admission.Admit(ctx, a); err != nil {
		return err
	}
	return x.Admission.Validate(ctx, a)
}
