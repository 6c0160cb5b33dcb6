package authorization

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"bonsai/api/resources"
)

func localSubjectAccessReviewRow() resources.Row {
	return resources.Row{
		GVK:      authorizationv1.SchemeGroupVersion.WithKind("LocalSubjectAccessReview"),
		Resource: "localsubjectaccessreviews", Singular: "localsubjectaccessreview",
		Namespaced: true,
		New:        resources.Make[authorizationv1.LocalSubjectAccessReview],
		Strategy: resources.Typed[*authorizationv1.LocalSubjectAccessReview]{
			Validate: validateLocalSubjectAccessReview}.Strategy(),
		NotStored: true,
	}
}

func selfSubjectAccessReviewRow() resources.Row {
	return resources.Row{
		GVK:      authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"),
		Resource: "selfsubjectaccessreviews", Singular: "selfsubjectaccessreview",
		New: resources.Make[authorizationv1.SelfSubjectAccessReview],
		Strategy: resources.Typed[*authorizationv1.SelfSubjectAccessReview]{
			Validate: validateSelfSubjectAccessReview}.Strategy(),
		NotStored: true,
	}
}

func selfSubjectRulesReviewRow() resources.Row {
	return resources.Row{
		GVK: authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"), Resource: "selfsubjectrulesreviews",
		Singular: "selfsubjectrulesreview",
		New:      resources.Make[authorizationv1.SelfSubjectRulesReview],
		Strategy: resources.Typed[*authorizationv1.SelfSubjectRulesReview]{
			Validate: validateSelfSubjectRulesReview}.Strategy(),
		NotStored: true,
	}
}

func subjectAccessReviewRow() resources.Row {
	return resources.Row{
		GVK: authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), Resource: "subjectaccessreviews",
		Singular: "subjectaccessreview",
		New:      resources.Make[authorizationv1.SubjectAccessReview],
		Strategy: resources.Typed[*authorizationv1.SubjectAccessReview]{
			Validate: validateSubjectAccessReview}.Strategy(),
		NotStored: true,
	}
}
