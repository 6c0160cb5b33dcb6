package authentication

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

func tokenReviewRow() resources.Row {
	return resources.Row{
		GVK: authenticationv1.SchemeGroupVersion.WithKind("TokenReview"), Resource: "tokenreviews",
		Singular:  "tokenreview",
		New:       resources.Make[authenticationv1.TokenReview],
		NotStored: true,
		Strategy:  resources.Typed[*authenticationv1.TokenReview]{Validate: validateTokenReview}.Strategy(),
	}
}

func selfSubjectReviewRow() resources.Row {
	return resources.Row{
		GVK: authenticationv1.SchemeGroupVersion.WithKind("SelfSubjectReview"), Resource: "selfsubjectreviews",
		Singular:  "selfsubjectreview",
		New:       resources.Make[authenticationv1.SelfSubjectReview],
		NotStored: true,
	}
}

func validateTokenReview(r *authenticationv1.TokenReview) field.ErrorList {
	if r.Spec.Token == "" {
		return field.ErrorList{field.Required(field.NewPath("spec", "token"), "")}
	}
	return nil
}
