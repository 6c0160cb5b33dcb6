package rbac

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"

	"bonsai/pkg/apiserver/request"
)

// ReviewRules answers a SelfSubjectRulesReview: what user may do in namespace, as far as RBAC knows.
func (a *Authorizer) ReviewRules(ctx context.Context, user *request.User,
	namespace string) authorizationv1.SubjectRulesReviewStatus {
	rules, err := a.RulesFor(ctx, user, namespace)
	s := authorizationv1.SubjectRulesReviewStatus{ResourceRules: []authorizationv1.ResourceRule{},
		NonResourceRules: []authorizationv1.NonResourceRule{}}
	for _, r := range rules {
		if len(r.Resources) > 0 {
			s.ResourceRules = append(s.ResourceRules,
				authorizationv1.ResourceRule{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources,
					ResourceNames: r.ResourceNames})
		}
		if len(r.NonResourceURLs) > 0 {
			s.NonResourceRules = append(s.NonResourceRules,
				authorizationv1.NonResourceRule{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
	}
	if err != nil {
		s.Incomplete, s.EvaluationError = true, err.Error()
	}
	return s
}
