// Package paramaccess keeps people from reading through a policy what they may not read themselves: who makes a policy
// with a paramKind must be allowed to read all objects of it, and who binds it the parameters that the binding refers
// to. Upstream checks the same in storage. It is always part of a server and has no name in --enable-admission-plugins.
package paramaccess

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// Config is what the plug-in needs.
type Config struct {
	Catalog *catalog.Catalog
	// Stores finds the policies that bindings name.
	Stores     func(schema.GroupResource) registry.Store
	Authorizer authz.Authorizer
}

type plugin struct{ Config }

// New returns the plug-in. Append it to the chain after those that Select chose.
func New(cfg Config) admission.Plugin {
	return admission.Plugin{Name: "PolicyParamAccess", Validator: plugin{cfg}}
}

// all stands for every group, version or resource.
const all = "*"

// Validate implements admission.Validator.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Resource.Group != admissionregistrationv1.GroupName || a.Subresource != "" ||
		a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	if a.User == nil || a.User.InGroup(request.GroupMasters) {
		return nil
	}
	switch o := a.Object.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		var old *admissionregistrationv1.ParamKind
		if was, ok := a.OldObject.(*admissionregistrationv1.ValidatingAdmissionPolicy); ok {
			old = was.Spec.ParamKind
		}
		return p.kind(ctx, a, o.Spec.ParamKind, old)
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		var old *admissionregistrationv1.ParamKind
		if was, ok := a.OldObject.(*admissionregistrationv1.MutatingAdmissionPolicy); ok {
			old = was.Spec.ParamKind
		}
		return p.kind(ctx, a, o.Spec.ParamKind, old)
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		return p.ref(ctx, a, "validatingadmissionpolicies", o.Spec.PolicyName, o.Spec.ParamRef)
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		return p.ref(ctx, a, "mutatingadmissionpolicies", o.Spec.PolicyName, o.Spec.ParamRef)
	}
	return nil
}

// kind checks the kind of a policy's parameters, where it is new.
func (p plugin) kind(ctx context.Context, a *admission.Attributes, k, old *admissionregistrationv1.ParamKind) error {
	if k == nil || apiequality.Semantic.DeepEqual(k, old) {
		return nil
	}
	info := request.Info{IsResource: true, Verb: "get", APIGroup: all, APIVersion: all, Resource: all}
	if route := p.route(k); route != nil {
		info.APIGroup, info.APIVersion, info.Resource = route.GVK.Group, route.GVK.Version, route.Row.Resource
	}
	if p.may(ctx, a, info) {
		return nil
	}
	return refuse(a, "paramKind",
		fmt.Sprintf(`user %v must have "get" permission on all objects of the referenced paramKind (kind=%s, apiVersion=%s)`, shown(a), k.Kind, k.APIVersion))
}

// ref checks the parameters that a binding refers to, of the kind that its policy says: as far as that is known.
func (p plugin) ref(ctx context.Context, a *admission.Attributes, resource, name string,
	r *admissionregistrationv1.ParamRef) error {
	if r == nil {
		return nil
	}
	info := request.Info{IsResource: true, Verb: "get", APIGroup: all, APIVersion: all, Resource: all, Name: all,
		Namespace: all}
	if r.Name != "" {
		info.Name = r.Name
	} else if r.Selector != nil {
		info.Verb = "list"
	}
	if r.Namespace != "" {
		info.Namespace = r.Namespace
	}
	k, err := p.paramKind(ctx, schema.GroupResource{Group: admissionregistrationv1.GroupName, Resource: resource}, name)
	why := fmt.Sprintf("user %v does not have %q permission on the object referenced by paramRef", shown(a), info.Verb)
	switch {
	case err != nil:
		why = fmt.Sprintf("unable to get policy %s to determine minimum required permissions and user %v does not have %q permission for all groups, versions and resources", name, shown(a), info.Verb)
	case k != nil:
		route := p.route(k)
		if route == nil {
			why = fmt.Sprintf("unable to resolve paramKind &{%s %s} to determine minimum required permissions and user %v does not have %q permission for all groups, versions and resources", k.APIVersion, k.Kind, shown(a), info.Verb)
			break
		}
		info.APIGroup, info.APIVersion, info.Resource = route.GVK.Group, route.GVK.Version, route.Row.Resource
		if !route.Row.Namespaced {
			info.Namespace = ""
		}
	}
	if p.may(ctx, a, info) {
		return nil
	}
	return refuse(a, "paramRef", why)
}

// paramKind is the kind of a policy's parameters; nil: it has none.
func (p plugin) paramKind(ctx context.Context, of schema.GroupResource,
	name string) (*admissionregistrationv1.ParamKind, error) {
	obj, err := p.Stores(of).Get(ctx, "", name)
	if err != nil {
		return nil, err
	}
	switch o := obj.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		return o.Spec.ParamKind, nil
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		return o.Spec.ParamKind, nil
	}
	return nil, fmt.Errorf("%s is no policy", name)
}

func (p plugin) route(k *admissionregistrationv1.ParamKind) *catalog.Route {
	gvk := schema.FromAPIVersionAndKind(k.APIVersion, k.Kind)
	for _, route := range p.Catalog.Snapshot().Routes(gvk.GroupVersion()) {
		if route.GVK == gvk && !route.Row.NotStored {
			return route
		}
	}
	return nil
}

func (p plugin) may(ctx context.Context, a *admission.Attributes, info request.Info) bool {
	d, _, _ := p.Authorizer.Authorize(ctx, authz.Attributes{User: a.User, Info: info})
	return d == authz.Allow
}

// shown is the user as upstream prints him.
func shown(a *admission.Attributes) *user.DefaultInfo {
	return &user.DefaultInfo{Name: a.User.Name, UID: a.User.UID, Groups: a.User.Groups, Extra: a.User.Extra}
}

func refuse(a *admission.Attributes, what, why string) error {
	return apierrors.NewInvalid(a.Kind.GroupKind(), nameOf(a.Object),
		field.ErrorList{field.Forbidden(field.NewPath("spec", what), why)})
}

func nameOf(obj runtime.Object) string {
	m, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return m.GetName()
}
