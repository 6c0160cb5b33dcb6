package authentication

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"bonsai/api/resources"
)

func tokenReviewRow() resources.Row {
	return resources.Row{
		GVK: authenticationv1.SchemeGroupVersion.WithKind("TokenReview"), Resource: "tokenreviews", Singular: "tokenreview",
		New:       resources.Make[authenticationv1.TokenReview],
		NotStored: true,
	}
}

func selfSubjectReviewRow() resources.Row {
	return resources.Row{
		GVK: authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), Resource: "selfsubjectreviews", Singular: "selfsubjectreview",
		New:       resources.Make[authenticationv1.SelfSubjectReview],
		NotStored: true,
	}
}
