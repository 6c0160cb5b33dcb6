package token

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// apiGroups is the attestation of a token for a webhook: the groups whose objects it is asked about.
const apiGroups = "admissionReviewAPIGroups"

// forWebhook reports whether a token is to be bound to the configuration of webhooks.
func forWebhook(ref *authenticationv1.BoundObjectReference) bool {
	if ref == nil {
		return false
	}
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	return kind == admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration") ||
		kind == admissionregistrationv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration")
}

// validateAttestations: only tokens for webhooks have one.
func validateAttestations(s *authenticationv1.TokenRequestSpec) field.ErrorList {
	path, has := field.NewPath("spec", "attestations"), s.Attestations
	if !forWebhook(s.BoundObjectRef) {
		if len(has) == 0 {
			return nil
		}
		return field.ErrorList{field.Invalid(path, has,
			"attestations may only be specified with a webhook bound object reference")}
	}
	if len(has) != 1 {
		return field.ErrorList{field.Invalid(path, has,
			"webhook bound requests require exactly one "+apiGroups+" attestation")}
	}
	for key, values := range has {
		if key != apiGroups {
			return field.ErrorList{field.NotSupported(path.Key(key), key, []string{apiGroups})}
		}
		if len(values) != 1 {
			return field.ErrorList{field.Invalid(path.Key(key), values, "must specify a single value")}
		}
	}
	return nil
}

// noWebhooks is the answer to a request for a token for a webhook, which needs a feature that is off by default.
func noWebhooks(ref *authenticationv1.BoundObjectReference) error {
	return apierrors.NewBadRequest(fmt.Sprintf(
		"cannot bind token to object of type %s (feature gate APIServerWebhookAuthenticationToken is disabled)",
		schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)))
}
