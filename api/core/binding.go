package core

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/api/validate"
)

func bindingRow() resources.Row {
	return resources.Row{
		GVK: corev1.SchemeGroupVersion.WithKind("Binding"), Resource: "bindings", Singular: "binding",
		Namespaced: true,
		New:        resources.Make[corev1.Binding],
		NotStored:  true,
		Strategy:   resources.Typed[*corev1.Binding]{Validate: validateBinding}.Strategy(),
	}
}

// validateBinding checks where a pod is to go: a node by name.
func validateBinding(b *corev1.Binding) field.ErrorList {
	var errs field.ErrorList
	if k := b.Target.Kind; k != "" && k != "Node" {
		errs = append(errs, field.NotSupported(field.NewPath("target", "kind"), k, []string{"Node", "<empty>"}))
	}
	name := field.NewPath("target", "name")
	if b.Target.Name == "" {
		return append(errs, field.Required(name, ""))
	}
	return append(errs, validate.Invalid(name, b.Target.Name,
		apivalidation.NameIsDNSSubdomain(b.Target.Name, false))...)
}
