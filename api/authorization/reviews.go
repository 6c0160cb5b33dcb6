package authorization

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"bonsai/api/resources"
)

func localSubjectAccessReviewRow() resources.Row {
	return resources.Row{
		GVK: authorizationv1.SchemeGroupVersion.WithKind("LocalSubjectAccessReview"), Resource: "localsubjectaccessreviews", Singular: "localsubjectaccessreview",
		Namespaced: true,
		New:        resources.Make[authorizationv1.LocalSubjectAccessReview],
		NotStored:  true,
	}
}

func selfSubjectAccessReviewRow() resources.Row {
	return resources.Row{
		GVK: authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), Resource: "selfsubjectaccessreviews", Singular: "selfsubjectaccessreview",
		New:       resources.Make[authorizationv1.SelfSubjectAccessReview],
		NotStored: true,
	}
}

func selfSubjectRulesReviewRow() resources.Row {
	return resources.Row{
		GVK: authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview"), Resource: "selfsubjectrulesreviews", Singular: "selfsubjectrulesreview",
		New:       resources.Make[authorizationv1.SelfSubjectRulesReview],
		NotStored: true,
	}
}

func subjectAccessReviewRow() resources.Row {
	return resources.Row{
		GVK: authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), Resource: "subjectaccessreviews", Singular: "subjectaccessreview",
		New:       resources.Make[authorizationv1.SubjectAccessReview],
		NotStored: true,
	}
}
