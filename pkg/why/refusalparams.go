package why

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// noParams explains a binding of a ValidatingAdmissionPolicy whose parameters do not exist, and which denies everything
// then. namespace is that of the request.
func noParams(ctx context.Context, c *Case, namespace, binding string) []Cause {
	b, _ := Get[admissionregistrationv1.ValidatingAdmissionPolicyBinding](ctx, c.World, "", binding)
	if b == nil || b.Spec.ParamRef == nil || b.Spec.ParamRef.Name == "" {
		return nil
	}
	p, _ := Get[admissionregistrationv1.ValidatingAdmissionPolicy](ctx, c.World, "", b.Spec.PolicyName)
	if p == nil || p.Spec.ParamKind == nil {
		return nil
	}
	gv, err := schema.ParseGroupVersion(p.Spec.ParamKind.APIVersion)
	if err != nil {
		return nil
	}
	ref := b.Spec.ParamRef
	params := Object{Group: gv.Group, Kind: p.Spec.ParamKind.Kind, Name: ref.Name, Namespace: ref.Namespace}
	r, served := c.Served(params.Group, params.Kind)
	if !served {
		return nil
	}
	if params.Namespace == "" {
		params.Namespace = namespace // a paramRef without one means the namespace of the request
	}
	items, _ := c.All(ctx, r, params.Namespace)
	var there []string
	for i := range items {
		there = append(there, items[i].GetName())
		if items[i].GetName() == ref.Name {
			return nil
		}
	}
	o := Object{Group: admissionregistrationv1.GroupName, Kind: "ValidatingAdmissionPolicyBinding", Name: binding}
	cause := Cause{Code: "ParamsMissing",
		Text: fmt.Sprintf("The binding takes its parameters from %s %s of namespace %s, which does not exist, and denies "+
			"everything without them (parameterNotFoundAction is Deny).", params.Kind, params.Name, params.Namespace),
		Evidence: []Evidence{See(o, ".spec.paramRef.name", ref.Name),
			Absent(params.Kind, params.Namespace, params.Name)},
		Fixes: []Fix{{Text: "Create it, or name another one.", Command: "kubectl edit " + o.Arg()}}}
	if len(there) > 0 {
		cause.Text += fmt.Sprintf(" There is %s.", And(there))
	}
	return []Cause{cause}
}
