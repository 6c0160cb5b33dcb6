// Package claimstatus asks who may write which part of the status of a ResourceClaim, beside the right to write the
// status: the scheduler binds it to devices, a driver tells of its own devices, and one that runs on a node of those of
// claims on that node only (DRAResourceClaimGranularStatusAuthorization).
package claimstatus

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// Checker is a registry.Checker of resourceclaims.
type Checker struct{ authorizer authz.Authorizer }

var _ registry.Checker = Checker{}

// New returns a Checker that asks authorizer.
func New(authorizer authz.Authorizer) Checker { return Checker{authorizer} }

// CheckUpdate implements registry.Checker. What the server does on its own account, without a request, it may.
func (c Checker) CheckUpdate(ctx context.Context, subresource string, obj, old runtime.Object) field.ErrorList {
	info, user := request.InfoFrom(ctx), request.UserFrom(ctx)
	if subresource != "status" || info == nil || user == nil {
		return nil
	}
	now, was := obj.(*resourcev1.ResourceClaim), old.(*resourcev1.ResourceClaim)
	var errs field.ErrorList
	path := field.NewPath("status")
	if !apiequality.Semantic.DeepEqual(now.Status.Allocation, was.Status.Allocation) ||
		!apiequality.Semantic.DeepEqual(now.Status.ReservedFor, was.Status.ReservedFor) {
		// Whoever binds claims binds those of all namespaces: it decides on devices that they share.
		if err := c.ask(ctx, user, question("binding", info.Verb)); err != nil {
			errs = append(errs, field.Forbidden(path.Child("allocation"),
				fmt.Sprintf("changing status.allocation or status.reservedFor requires resource=%q, verb=%q permission: %v", "resourceclaims/binding", info.Verb, err)))
		}
	}
	if now.Status.Allocation == nil {
		return errs // whoever takes the devices away takes what was said of them
	}
	verbs := []string{"arbitrary-node:" + info.Verb}
	if node := nodeOf(user); node != "" && node == allocatedOn(now.Status.Allocation) {
		verbs = append([]string{"associated-node:" + info.Verb}, verbs...)
	}
	for _, driver := range changed(now.Status.Devices, was.Status.Devices) {
		if err := c.askAny(ctx, user, verbs, now.Namespace, driver); err != nil {
			errs = append(errs, field.Forbidden(path.Child("devices"),
				fmt.Sprintf("changing status.devices requires resource=%q, verb=\"%s\" permission: %v",
					"resourceclaims/driver", verbs, err)))
		}
	}
	return errs
}

func question(subresource, verb string) request.Info {
	return request.Info{IsResource: true, Verb: verb, APIGroup: resourcev1.GroupName,
		APIVersion: resourcev1.SchemeGroupVersion.Version, Resource: "resourceclaims", Subresource: subresource}
}

// askAny asks for one of the verbs on what the driver says; the error is that of the first.
func (c Checker) askAny(ctx context.Context, user *request.User, verbs []string, ns, driver string) error {
	var first error
	for _, verb := range verbs {
		q := question("driver", verb)
		q.Namespace, q.Name = ns, driver
		err := c.ask(ctx, user, q)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func (c Checker) ask(ctx context.Context, user *request.User, q request.Info) error {
	a := authz.Attributes{User: user, Info: q}
	decision, reason, err := c.authorizer.Authorize(ctx, a)
	if err == nil && decision == authz.Allow {
		return nil
	}
	return authz.Forbidden(a, reason)
}

// nodeOf is the node that a service account's token is bound to; empty: none.
func nodeOf(user *request.User) string {
	if names := user.Extra[request.ExtraNodeName]; len(names) == 1 && user.IsServiceAccount() {
		return names[0]
	}
	return ""
}

// allocatedOn is the one node that an allocation is for, as the scheduler writes it of devices of a node; empty: it is
// for several, or all.
func allocatedOn(a *resourcev1.AllocationResult) string {
	if a.NodeSelector == nil || len(a.NodeSelector.NodeSelectorTerms) != 1 {
		return ""
	}
	term := a.NodeSelector.NodeSelectorTerms[0]
	if len(term.MatchExpressions) > 0 || len(term.MatchFields) != 1 {
		return ""
	}
	f := term.MatchFields[0]
	if f.Key != metav1.ObjectNameField || f.Operator != corev1.NodeSelectorOpIn || len(f.Values) != 1 {
		return ""
	}
	return f.Values[0]
}

// device names one of those that drivers tell of.
type device struct{ driver, pool, device, share string }

// changed returns the drivers whose device status changed, sorted.
func changed(now, was []resourcev1.AllocatedDeviceStatus) []string {
	before, after := byDevice(was), byDevice(now)
	drivers := map[string]bool{}
	for id, d := range after {
		if b, ok := before[id]; !ok || !apiequality.Semantic.DeepEqual(b, d) {
			drivers[id.driver] = true
		}
	}
	for id := range before {
		if _, ok := after[id]; !ok {
			drivers[id.driver] = true
		}
	}
	out := make([]string, 0, len(drivers))
	for d := range drivers {
		out = append(out, d)
	}
	slices.Sort(out)
	return out
}

func byDevice(list []resourcev1.AllocatedDeviceStatus) map[device]resourcev1.AllocatedDeviceStatus {
	out := make(map[device]resourcev1.AllocatedDeviceStatus, len(list))
	for _, d := range list {
		id := device{driver: d.Driver, pool: d.Pool, device: d.Device}
		if d.ShareID != nil {
			id.share = *d.ShareID
		}
		out[id] = d
	}
	return out
}
