package authz

import (
	"context"
	"errors"

	authorizationv1 "k8s.io/api/authorization/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/pkg/apiserver/request"
)

// Lister lists what a user may do in a namespace. A mode that cannot says so in the answer.
type Lister interface {
	ReviewRules(ctx context.Context, user *request.User, namespace string) authorizationv1.SubjectRulesReviewStatus
}

// Lists returns a Lister of all rules of list. It is incomplete if one of list is, and reports all their errors.
func Lists(list ...Lister) Lister { return lists(list) }

type lists []Lister

func (l lists) ReviewRules(ctx context.Context, user *request.User,
	namespace string) authorizationv1.SubjectRulesReviewStatus {
	var all authorizationv1.SubjectRulesReviewStatus
	var errs []error
	for _, one := range l {
		s := one.ReviewRules(ctx, user, namespace)
		all.ResourceRules = append(all.ResourceRules, s.ResourceRules...)
		all.NonResourceRules = append(all.NonResourceRules, s.NonResourceRules...)
		all.Incomplete = all.Incomplete || s.Incomplete
		if s.EvaluationError != "" {
			errs = append(errs, errors.New(s.EvaluationError))
		}
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		all.EvaluationError = err.Error()
	}
	return all
}
