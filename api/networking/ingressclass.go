package networking

import (
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

func ingressClassRow() resources.Row {
	return resources.Row{
		GVK: networkingv1.SchemeGroupVersion.WithKind("IngressClass"), Resource: "ingressclasses",
		Singular:    "ingressclass",
		StoragePath: "ingressclasses",
		New:         resources.Make[networkingv1.IngressClass],
		Strategy: resources.Typed[*networkingv1.IngressClass]{
			Default:        defaultIngressClass,
			Validate:       validateIngressClass,
			ValidateUpdate: validateIngressClassUpdate,
			SpecChanged: func(obj, old *networkingv1.IngressClass) bool {
				return !apiequality.Semantic.DeepEqual(obj.Spec, old.Spec)
			},
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Controller", "Controller that is responsible for handling this class"),
			resources.Column("Parameters", "A reference to a resource with additional parameters"),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(c *networkingv1.IngressClass, now time.Time) []any {
			name := c.Name
			if c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
				name += " (default)"
			}
			return []any{name, c.Spec.Controller, parametersText(c.Spec.Parameters),
				resources.Age(c.CreationTimestamp, now)}
		}),
	}
}

// parametersText is what a class's parameters are as people read it: "params.example.com/p".
func parametersText(p *networkingv1.IngressClassParametersReference) string {
	if p == nil {
		return "<none>"
	}
	text := p.Kind
	if p.APIGroup != nil {
		text += "." + *p.APIGroup
	}
	return text + "/" + p.Name
}

func defaultIngressClass(c *networkingv1.IngressClass) {
	if p := c.Spec.Parameters; p != nil {
		defaults.SetPtr(&p.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
	}
}

// maxControllerLength is upstream's.
const maxControllerLength = 250

func validateIngressClass(c *networkingv1.IngressClass) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateController(c.Spec.Controller, path.Child("controller"))
	if c.Spec.Parameters != nil {
		errs = append(errs, validateParameters(c.Spec.Parameters, path.Child("parameters"))...)
	}
	return errs
}

// validateController checks a domain and a path behind it.
func validateController(name string, path *field.Path) field.ErrorList {
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "")}
	case len(name) > maxControllerLength:
		return field.ErrorList{field.TooLong(path, "", maxControllerLength)}
	}
	return validation.IsDomainPrefixedPath(path, name)
}

func validateParameters(p *networkingv1.IngressClassParametersReference, path *field.Path) field.ErrorList {
	errs := validateReference(p.APIGroup, p.Kind, p.Name, path)
	if p.Scope == nil {
		return append(errs, field.Required(path.Child("scope"), ""))
	}
	namespace := path.Child("namespace")
	switch *p.Scope {
	case networkingv1.IngressClassParametersReferenceScopeNamespace:
		if p.Namespace == nil {
			return append(errs, field.Required(namespace, "`parameters.scope` is set to 'Namespace'"))
		}
		return append(errs, validate.Invalid(namespace, *p.Namespace,
			apivalidation.ValidateNamespaceName(*p.Namespace, false))...)
	case networkingv1.IngressClassParametersReferenceScopeCluster:
		if p.Namespace != nil {
			errs = append(errs, field.Forbidden(namespace, "`parameters.scope` is set to 'Cluster'"))
		}
		return errs
	}
	return append(errs, field.NotSupported(path.Child("scope"), *p.Scope,
		[]string{networkingv1.IngressClassParametersReferenceScopeCluster,
			networkingv1.IngressClassParametersReferenceScopeNamespace}))
}

// validateIngressClassUpdate: a class keeps its controller, which must be valid all the same.
func validateIngressClassUpdate(obj, old *networkingv1.IngressClass) field.ErrorList {
	errs := apivalidation.ValidateImmutableField(obj.Spec.Controller, old.Spec.Controller,
		field.NewPath("spec", "controller"))
	return append(errs, validateIngressClass(obj)...)
}
