package authorization

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateSubjectAccessReview(r *authorizationv1.SubjectAccessReview) field.ErrorList {
	return validateSpec(&r.Spec)
}

// validateLocalSubjectAccessReview: the namespace asked about is the one the review is posted to.
func validateLocalSubjectAccessReview(r *authorizationv1.LocalSubjectAccessReview) field.ErrorList {
	errs := validateSpec(&r.Spec)
	path := field.NewPath("spec")
	if a := r.Spec.ResourceAttributes; a != nil && a.Namespace != r.Namespace {
		errs = append(errs, field.Invalid(path.Child("resourceAttributes", "namespace"), a.Namespace,
			"must match metadata.namespace"))
	}
	if r.Spec.NonResourceAttributes != nil {
		errs = append(errs, field.Invalid(path.Child("nonResourceAttributes"), r.Spec.NonResourceAttributes,
			"disallowed on this kind of request"))
	}
	return errs
}

func validateSpec(s *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateAttributes(s.ResourceAttributes, s.NonResourceAttributes, path)
	if s.User == "" && len(s.Groups) == 0 {
		errs = append(errs, field.Invalid(path.Child("user"), s.User,
			"at least one of user or group must be specified"))
	}
	return errs
}

func validateSelfSubjectAccessReview(r *authorizationv1.SelfSubjectAccessReview) field.ErrorList {
	return validateAttributes(r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes, field.NewPath("spec"))
}

// validateAttributes: a review asks about a resource or about a path, not both.
func validateAttributes(r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes,
	path *field.Path) field.ErrorList {
	if (r == nil) != (n == nil) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, n,
		"exactly one of nonResourceAttributes or resourceAttributes must be specified")}
}

func validateSelfSubjectRulesReview(r *authorizationv1.SelfSubjectRulesReview) field.ErrorList {
	if r.Spec.Namespace == "" {
		return field.ErrorList{field.Required(field.NewPath("spec", "namespace"), "no namespace on request")}
	}
	return nil
}
