package token

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// TestAttestations: the errors are those of a kube-apiserver v1.37.2.
func TestAttestations(t *testing.T) {
	t.Parallel()
	pod := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p"}
	hook := &authenticationv1.BoundObjectReference{APIVersion: "admissionregistration.k8s.io/v1",
		Kind: "ValidatingWebhookConfiguration", Name: "h"}
	const none = `: attestations may only be specified with a webhook bound object reference`
	for name, c := range map[string]struct {
		has  map[string]authenticationv1.AttestationValue
		ref  *authenticationv1.BoundObjectReference
		want string
	}{
		"none": {}, "empty": {has: map[string]authenticationv1.AttestationValue{}}, "of a pod": {ref: pod},
		"without an object": {has: map[string]authenticationv1.AttestationValue{"k": {"v"}},
			want: `spec.attestations: Invalid value: {"k":["v"]}` + none},
		"with a pod": {has: map[string]authenticationv1.AttestationValue{"k": {"v"}}, ref: pod,
			want: `spec.attestations: Invalid value: {"k":["v"]}` + none},
		"a webhook without": {ref: hook, want: "spec.attestations: Invalid value: null: " +
			"webhook bound requests require exactly one admissionReviewAPIGroups attestation"},
		"another": {has: map[string]authenticationv1.AttestationValue{"k": {"v"}}, ref: hook,
			want: `spec.attestations[k]: Unsupported value: "k": supported values: "admissionReviewAPIGroups"`},
		"no value": {has: map[string]authenticationv1.AttestationValue{apiGroups: {}}, ref: hook,
			want: "spec.attestations[admissionReviewAPIGroups]: Invalid value: []: must specify a single value"},
		"one": {has: map[string]authenticationv1.AttestationValue{apiGroups: {"apps"}}, ref: hook},
	} {
		errs := validateAttestations(&authenticationv1.TokenRequestSpec{Attestations: c.has, BoundObjectRef: c.ref})
		got := ""
		if len(errs) > 0 {
			got = errs[0].Error()
		}
		if got != c.want || len(errs) > 1 {
			t.Errorf("%s: %v, want %s", name, errs, c.want)
		}
	}
	const feature = "cannot bind token to object of type admissionregistration.k8s.io/v1, " +
		"Kind=ValidatingWebhookConfiguration (feature gate APIServerWebhookAuthenticationToken is disabled)"
	if err := noWebhooks(hook); err.Error() != feature {
		t.Error(err)
	}
}
