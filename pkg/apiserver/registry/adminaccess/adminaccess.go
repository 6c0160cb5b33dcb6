// Package adminaccess lets devices be claimed for administrative access, which shares them with everybody who has them,
// in those namespaces only that whoever may label them has marked (KEP-5018).
package adminaccess

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/registry"
)

const refusal = "admin access to devices requires the `" + resourcev1.DRAAdminNamespaceLabelKey +
	": true` label on the containing namespace"

// Hook takes part in the writes of resourceclaims and resourceclaimtemplates, whose requests never change later, and of
// the status of claims.
type Hook struct{ stores registry.Stores }

var (
	_ registry.Hook    = Hook{}
	_ registry.Checker = Hook{}
)

// New returns a Hook that reads namespaces.
func New(stores registry.Stores) Hook { return Hook{stores} }

// BeforeCreate implements registry.Hook.
func (h Hook) BeforeCreate(ctx context.Context, obj runtime.Object, _ bool) (func(bool), error) {
	var meta *metav1.ObjectMeta
	var requests []resourcev1.DeviceRequest
	path, kind := field.NewPath("spec"), resourcev1.SchemeGroupVersion.WithKind("ResourceClaim").GroupKind()
	switch o := obj.(type) {
	case *resourcev1.ResourceClaim:
		meta, requests = &o.ObjectMeta, o.Spec.Devices.Requests
	case *resourcev1.ResourceClaimTemplate: // Kubernetes, too, tells of its claims as if they stood for themselves
		meta, requests = &o.ObjectMeta, o.Spec.Spec.Devices.Requests
		kind = resourcev1.SchemeGroupVersion.WithKind("ResourceClaimTemplate").GroupKind()
	}
	var errs field.ErrorList
	for i := range requests {
		if e := requests[i].Exactly; e != nil && e.AdminAccess != nil && *e.AdminAccess {
			errs = append(errs, field.Forbidden(path.Child("devices", "requests").Index(i).Child("adminAccess"),
				refusal))
		}
	}
	if len(errs) == 0 {
		return func(bool) {}, nil
	}
	switch marked, err := h.marked(ctx, meta.Namespace); {
	case err != nil:
		return nil, err
	case marked:
		return func(bool) {}, nil
	}
	return nil, apierrors.NewInvalid(kind, meta.Name, errs)
}

// marked reports whether a namespace may have administrative access. It reads the newest state: who takes the label
// away must find no claim made or allocated after that.
func (h Hook) marked(ctx context.Context, namespace string) (bool, error) {
	found, err := h.stores.Store(corev1.Resource("namespaces")).Get(ctx, "", namespace)
	if err != nil {
		return false, err
	}
	ns, ok := found.(*corev1.Namespace)
	return ok && ns.Labels[resourcev1.DRAAdminNamespaceLabelKey] == "true", nil
}

// CheckUpdate implements registry.Checker: the status of a claim gives administrative access only while the namespace
// is marked. What was given before stays.
func (h Hook) CheckUpdate(ctx context.Context, subresource string, obj, old runtime.Object) (errs field.ErrorList) {
	now, ok := obj.(*resourcev1.ResourceClaim)
	was, okOld := old.(*resourcev1.ResourceClaim)
	if !ok || !okOld || subresource != "status" || len(given(was)) > 0 {
		return nil
	}
	for _, i := range given(now) {
		errs = append(errs, field.Forbidden(
			field.NewPath("status", "allocation", "devices", "results").Index(i).Child("adminAccess"), refusal))
	}
	if len(errs) == 0 {
		return nil
	}
	switch marked, err := h.marked(ctx, now.Namespace); {
	case err != nil:
		return field.ErrorList{field.InternalError(field.NewPath("status", "allocation"), err)}
	case marked:
		return nil
	}
	return errs
}

// given are the devices of a claim's allocation, by their place, that it has for administrative access.
func given(claim *resourcev1.ResourceClaim) (places []int) {
	if claim.Status.Allocation == nil {
		return nil
	}
	for i, r := range claim.Status.Allocation.Devices.Results {
		if r.AdminAccess != nil && *r.AdminAccess {
			places = append(places, i)
		}
	}
	return places
}

// BeforeUpdate implements registry.Hook: requests are immutable.
func (Hook) BeforeUpdate(context.Context, runtime.Object, runtime.Object, bool) (func(bool), error) {
	return func(bool) {}, nil
}

// AfterDelete implements registry.Hook.
func (Hook) AfterDelete(context.Context, runtime.Object) {}
