package networking

import (
	"fmt"
	"net/netip"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/api/validate"
)

func ipAddressRow() resources.Row {
	return resources.Row{
		GVK: networkingv1.SchemeGroupVersion.WithKind("IPAddress"), Resource: "ipaddresses", Singular: "ipaddress",
		ShortNames:  []string{"ip"},
		StoragePath: "ipaddresses",
		New:         resources.Make[networkingv1.IPAddress],
		Strategy: resources.Typed[*networkingv1.IPAddress]{
			Validate:       func(a *networkingv1.IPAddress) field.ErrorList { return validateParent(a.Spec.ParentRef) },
			ValidateUpdate: validateIPAddressUpdate,
			ValidateName:   func(name string, _ bool) []string { return addressName(name) },
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("ParentRef", networkingv1.IPAddressSpec{}.SwaggerDoc()["parentRef"]),
		},
		Cells: resources.Cells(func(a *networkingv1.IPAddress, _ time.Time) []any {
			return []any{a.Name, parentText(a.Spec.ParentRef)}
		}),
	}
}

// parentText is "services/default/web"; a group comes behind the resource.
func parentText(p *networkingv1.ParentReference) string {
	if p == nil {
		return "<none>"
	}
	text := p.Resource
	if p.Group != "" {
		text += "." + p.Group
	}
	if p.Namespace != "" {
		text += "/" + p.Namespace
	}
	return text + "/" + p.Name
}

// addressName tells what is wrong with a name, which must be an address in its one canonical form: so that two objects
// are two addresses.
func addressName(name string) []string {
	var msgs []string
	for _, e := range validation.IsValidIP(nil, name) {
		msgs = append(msgs, e.Detail)
	}
	if a, err := netip.ParseAddr(name); len(msgs) == 0 && err == nil && a.String() != name {
		msgs = append(msgs, fmt.Sprintf("must be in canonical form (%q)", a.String()))
	}
	return msgs
}

func validateParent(p *networkingv1.ParentReference) field.ErrorList {
	at := field.NewPath("spec", "parentRef")
	if p == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	var errs field.ErrorList
	if p.Group != "" {
		errs = append(errs, validate.Invalid(at.Child("group"), p.Group, validation.IsDNS1123Subdomain(p.Group))...)
	}
	errs = append(errs, requiredSegment(p.Resource, at.Child("resource"))...)
	errs = append(errs, requiredSegment(p.Name, at.Child("name"))...)
	if p.Namespace != "" {
		errs = append(errs, validate.Invalid(at.Child("namespace"), p.Namespace,
			path.IsValidPathSegmentName(p.Namespace))...)
	}
	return errs
}

func validateIPAddressUpdate(obj, old *networkingv1.IPAddress) field.ErrorList {
	errs := validateParent(obj.Spec.ParentRef)
	return append(errs, validate.Immutable(obj.Spec.ParentRef, old.Spec.ParentRef,
		field.NewPath("spec", "parentRef"))...)
}
