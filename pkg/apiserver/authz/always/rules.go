package always

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

var (
	_ authz.Lister = Allow{}
	_ authz.Lister = Deny{}
)

// ReviewRules implements authz.Lister.
func (Allow) ReviewRules(context.Context, *request.User, string) authorizationv1.SubjectRulesReviewStatus {
	return authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{
			{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
		NonResourceRules: []authorizationv1.NonResourceRule{{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}}}
}

// ReviewRules implements authz.Lister.
func (Deny) ReviewRules(context.Context, *request.User, string) authorizationv1.SubjectRulesReviewStatus {
	return authorizationv1.SubjectRulesReviewStatus{}
}
