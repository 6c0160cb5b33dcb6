package networking

import (
	"net/netip"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

func serviceCIDRRow() resources.Row {
	return resources.Row{
		GVK: networkingv1.SchemeGroupVersion.WithKind("ServiceCIDR"), Resource: "servicecidrs", Singular: "servicecidr",
		StoragePath:  "servicecidrs",
		New:          resources.Make[networkingv1.ServiceCIDR],
		Strategy:     serviceCIDRStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(serviceCIDRStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("CIDRs", networkingv1.ServiceCIDRSpec{}.SwaggerDoc()["cidrs"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(c *networkingv1.ServiceCIDR, now time.Time) []any {
			return []any{c.Name, strings.Join(c.Spec.CIDRs, ","), resources.Age(c.CreationTimestamp, now)}
		}),
	}
}

func serviceCIDRStrategy() resources.Typed[*networkingv1.ServiceCIDR] {
	return resources.Typed[*networkingv1.ServiceCIDR]{
		PrepareCreate: func(c *networkingv1.ServiceCIDR) { c.Status = networkingv1.ServiceCIDRStatus{} },
		PrepareUpdate: func(obj, old *networkingv1.ServiceCIDR) { obj.Status = *old.Status.DeepCopy() },
		Validate: func(c *networkingv1.ServiceCIDR) field.ErrorList {
			return validateCIDRs(c.Spec.CIDRs, cidrsPath())
		},
		ValidateUpdate: validateServiceCIDRUpdate,
	}
}

func serviceCIDRStatusStrategy() resources.Typed[*networkingv1.ServiceCIDR] {
	s := serviceCIDRStrategy()
	s.PrepareUpdate = func(obj, old *networkingv1.ServiceCIDR) {
		obj.Spec = *old.Spec.DeepCopy()
		metav1.ResetObjectMetaForStatus(&obj.ObjectMeta, &old.ObjectMeta)
	}
	s.Resets = []string{"spec", "metadata"}
	s.ValidateUpdate = func(_, _ *networkingv1.ServiceCIDR) field.ErrorList { return nil }
	return s
}

func cidrsPath() *field.Path { return field.NewPath("spec", "cidrs") }

func validateCIDRs(cidrs []string, path *field.Path) field.ErrorList {
	switch len(cidrs) {
	case 0:
		return field.ErrorList{field.Required(path, "at least one CIDR required")}
	case 1, 2:
	default:
		return field.ErrorList{field.Invalid(path, struct{ CIDRs []string }{cidrs}, "may only hold up to 2 values")}
	}
	var errs field.ErrorList
	for i, c := range cidrs {
		errs = append(errs, validation.IsValidCIDR(path.Index(i), c)...)
	}
	if len(errs) == 0 && len(cidrs) == 2 && isIPv6(cidrs[0]) == isIPv6(cidrs[1]) {
		errs = append(errs, field.Invalid(path, cidrs,
			"may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"))
	}
	return errs
}

// isIPv6 tells the family of a valid CIDR.
func isIPv6(cidr string) bool {
	p, err := netip.ParsePrefix(cidr)
	return err == nil && p.Addr().Is6()
}

// validateServiceCIDRUpdate: a second CIDR may be added, of the other family; nothing else changes.
func validateServiceCIDRUpdate(obj, old *networkingv1.ServiceCIDR) field.ErrorList {
	now, was := obj.Spec.CIDRs, old.Spec.CIDRs
	if len(now) < len(was) {
		return field.ErrorList{field.Invalid(cidrsPath(), now, apivalidation.FieldImmutableErrorMsg)}
	}
	var errs field.ErrorList
	for i, c := range was {
		errs = append(errs, apivalidation.ValidateImmutableField(now[i], c, cidrsPath().Index(i))...)
	}
	if len(now) > len(was) {
		errs = append(errs, validateCIDRs(now, cidrsPath())...)
	}
	return errs
}
