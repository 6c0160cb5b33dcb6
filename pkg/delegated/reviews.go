package delegated

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
)

// AccessReviewer asks the API server whether a user may do something.
type AccessReviewer interface {
	ReviewAccess(ctx context.Context, r *authzv1.SubjectAccessReview) (*authzv1.SubjectAccessReview, error)
}

// Reviews authorizes by a SubjectAccessReview.
type Reviews struct {
	client AccessReviewer
	ttl    ReviewTTL
	memory memory[decision]
}

// ReviewTTL is how long decisions are remembered.
type ReviewTTL struct{ Allowed, Denied time.Duration }

type decision struct {
	allowed bool
	reason  string
}

var _ Authorizer = (*Reviews)(nil)

// NewReviews returns an authorizer that asks the API server.
func NewReviews(client AccessReviewer, ttl ReviewTTL, now func() time.Time) *Reviews {
	return &Reviews{client: client, ttl: ttl, memory: newMemory[decision](now)}
}

// Authorize implements Authorizer.
func (a *Reviews) Authorize(ctx context.Context, user authnv1.UserInfo, what Attributes) (bool, string, error) {
	spec := authzv1.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups,
		ResourceAttributes: what.Resource, NonResourceAttributes: what.Path}
	if len(user.Extra) > 0 {
		spec.Extra = make(map[string]authzv1.ExtraValue, len(user.Extra))
		for k, v := range user.Extra {
			spec.Extra[k] = authzv1.ExtraValue(v)
		}
	}
	key, err := json.Marshal(spec)
	if err != nil {
		return false, "", fmt.Errorf("encode the access review: %w", err)
	}
	if d, ok := a.memory.get(key); ok {
		return d.allowed, d.reason, nil
	}
	review, err := a.client.ReviewAccess(ctx, &authzv1.SubjectAccessReview{Spec: spec})
	if err != nil {
		return false, "", fmt.Errorf("review access: %w", err)
	}
	d, ttl := decision{review.Status.Allowed, review.Status.Reason}, a.ttl.Denied
	if d.allowed {
		ttl = a.ttl.Allowed
	}
	a.memory.put(key, d, ttl)
	return d.allowed, d.reason, nil
}
