// Package ownerreferences is the admission plug-in OwnerReferencesPermissionEnforcement, which is off unless it is
// enabled: only who may delete an object changes its owners, as the garbage collector deletes it with them; and only
// who may update the finalizers of an owner lets the owner's deletion wait for an object.
package ownerreferences

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/request"
)

type plugin struct {
	catalog    *catalog.Catalog
	authorizer authz.Authorizer
}

// New returns the plug-in. The catalog knows the resources of the owners' kinds.
func New(c *catalog.Catalog, a authz.Authorizer) admission.Plugin {
	return admission.Plugin{Name: "OwnerReferencesPermissionEnforcement", Validator: plugin{c, a}}
}

// Validate implements admission.Validator.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Operation != admission.Create && a.Operation != admission.Update ||
		a.Is(schema.GroupResource{Group: corev1.GroupName, Resource: "pods/status"}) {
		return nil
	}
	now, was := owners(a.Object), owners(a.OldObject)
	if apiequality.Semantic.DeepEqual(now, was) {
		return nil
	}
	if a.Operation == admission.Update {
		if allowed, why, err := p.may(ctx, a, request.Info{Verb: "delete", APIGroup: a.Resource.Group,
			APIVersion: a.Resource.Version, Resource: a.Resource.Resource, Subresource: a.Subresource,
			Namespace: a.Namespace, Name: a.Name}); !allowed {
			return admission.Forbid(a, "cannot set an ownerRef on a resource you can't delete: %v, %v", why, err)
		}
	}
	blocked := map[types.UID]bool{}
	for _, ref := range was {
		if blocks(ref) {
			blocked[ref.UID] = true
		}
	}
	for _, ref := range now {
		if !blocks(ref) || blocked[ref.UID] {
			continue
		}
		if err := p.mayBlock(ctx, a, ref); err != nil {
			return err
		}
	}
	return nil
}

// all stands for every group, version, resource or name.
const all = "*"

// mayBlock refuses a reference that makes its owner wait, unless the user may update the owner's finalizers. Of a kind
// that is not served, only who may update all finalizers.
func (p plugin) mayBlock(ctx context.Context, a *admission.Attributes, ref metav1.OwnerReference) error {
	r, err := p.resource(ref)
	if err != nil {
		if allowed, _, _ := p.may(ctx, a, request.Info{Verb: "update", APIGroup: all, APIVersion: all, Resource: all,
			Subresource: "finalizers", Name: all}); allowed {
			return nil
		}
		return admission.Forbid(a,
			"cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %v Kind %v: %v",
			ref.APIVersion, ref.Kind, err)
	}
	info := request.Info{Verb: "update", APIGroup: r.GVK.Group, APIVersion: r.GVK.Version, Resource: r.Row.Resource,
		Subresource: "finalizers", Name: ref.Name}
	if r.Row.Namespaced {
		info.Namespace = a.Namespace
	}
	if allowed, why, err := p.may(ctx, a, info); !allowed {
		return admission.Forbid(a,
			"cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: %v, %v",
			why, err)
	}
	return nil
}

// resource finds the resource of an owner's kind.
func (p plugin) resource(ref metav1.OwnerReference) (*catalog.Route, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, err
	}
	for _, r := range p.catalog.Snapshot().Routes(gv) {
		if r.GVK.Kind == ref.Kind {
			return r, nil
		}
	}
	return nil, fmt.Errorf("no matches for kind %q in version %q", ref.Kind, ref.APIVersion)
}

func (p plugin) may(ctx context.Context, a *admission.Attributes, info request.Info) (bool, string, error) {
	info.IsResource = true
	d, why, err := p.authorizer.Authorize(ctx, authz.Attributes{User: a.User, Info: info})
	return d == authz.Allow, why, err
}

// owners returns the owners of an object; nil for one that has no metadata.
func owners(obj runtime.Object) []metav1.OwnerReference {
	if obj == nil {
		return nil
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	return m.GetOwnerReferences()
}

func blocks(ref metav1.OwnerReference) bool {
	return ref.BlockOwnerDeletion != nil && *ref.BlockOwnerDeletion
}
