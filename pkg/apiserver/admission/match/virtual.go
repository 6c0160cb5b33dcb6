package match

import (
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"bonsai/pkg/apiserver/admission"
)

// Virtual reports whether a request only asks who somebody is or what somebody may do. It changes nothing, so neither
// webhooks nor policies are asked about it.
func Virtual(a *admission.Attributes) bool {
	switch a.Resource.Group {
	case authenticationv1.GroupName:
		return slices.Contains([]string{"tokenreviews", "selfsubjectreviews"}, a.Resource.Resource)
	case authorizationv1.GroupName:
		return slices.Contains([]string{"localsubjectaccessreviews", "selfsubjectaccessreviews",
			"selfsubjectrulesreviews", "subjectaccessreviews"}, a.Resource.Resource)
	}
	return false
}
