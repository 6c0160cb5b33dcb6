package rest

import (
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/request"
)

// admitConnect asks admission about a connection to a subresource.
func (x *exchange) admitConnect() error {
	if x.Admission == nil {
		return nil
	}
	ctx := x.r.Context()
	a := &admission.Attributes{
		Operation: admission.Connect, Kind: x.res.Row.GVK, Resource: x.res.Row.GVR(), Subresource: x.info.Subresource,
		Namespace: x.info.Namespace, Name: x.info.Name, User: request.UserFrom(ctx), Warn: func(string) {},
	}
	if err := x.Admission.Admit(ctx, a); err != nil {
		return err
	}
	return x.Admission.Validate(ctx, a)
}
