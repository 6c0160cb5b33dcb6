// Package admissionregistration gives access to the kinds of admissionregistration.k8s.io/v1 that components use.
package admissionregistration

import (
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"bonsai/pkg/apiclient"
)

// ValidatingAdmissionPolicies gives access to validatingadmissionpolicies.
func ValidatingAdmissionPolicies(
	c *apiclient.Client) *apiclient.Resource[*admissionregistrationv1.ValidatingAdmissionPolicy] {
	return apiclient.NewResource(c, admissionregistrationv1.SchemeGroupVersion, "validatingadmissionpolicies",
		&admissionregistrationv1.ValidatingAdmissionPolicy{})
}
