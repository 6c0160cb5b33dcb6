package match

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"bonsai/pkg/apiserver/authz"
	requests "bonsai/pkg/apiserver/request"
)

// rights lets the CEL library ask the server's authorizer.
type rights struct{ authorizer authz.Authorizer }

// Authorize implements the library's authorizer.Authorizer.
func (r rights) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	u := a.GetUser()
	question := authz.Attributes{
		User: &requests.User{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra()},
		Info: requests.Info{
			IsResource: a.IsResourceRequest(), Path: a.GetPath(), Verb: a.GetVerb(), APIGroup: a.GetAPIGroup(),
			APIVersion: a.GetAPIVersion(),
			Namespace:  a.GetNamespace(), Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
		},
	}
	if selected, err := a.GetFieldSelector(); err == nil && len(selected) > 0 {
		var terms []fields.Selector
		for _, t := range selected {
			terms = append(terms, fields.OneTermEqualSelector(t.Field, t.Value))
		}
		question.FieldSelector = fields.AndSelectors(terms...).String()
	}
	if selected, err := a.GetLabelSelector(); err == nil && len(selected) > 0 {
		question.LabelSelector = labels.NewSelector().Add(selected...).String()
	}
	decision, reason, err := r.authorizer.Authorize(ctx, question)
	switch decision {
	case authz.Allow:
		return authorizer.DecisionAllow, reason, err
	case authz.Deny:
		return authorizer.DecisionDeny, reason, err
	}
	return authorizer.DecisionNoOpinion, reason, err
}

// caller is the request's user as the CEL library knows users.
func caller(u *requests.User) user.Info {
	if u == nil {
		return &user.DefaultInfo{}
	}
	return &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}
