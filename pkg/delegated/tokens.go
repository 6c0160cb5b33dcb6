package delegated

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
)

// TokenReviewer asks the API server whose a token is.
type TokenReviewer interface {
	ReviewToken(ctx context.Context, r *authnv1.TokenReview) (*authnv1.TokenReview, error)
}

// Tokens authenticates bearer tokens by a TokenReview.
type Tokens struct {
	client TokenReviewer
	ttl    time.Duration
	memory memory[authnv1.UserInfo]
}

var _ Authenticator = (*Tokens)(nil)

// NewTokens returns an authenticator that asks the API server, and remembers for ttl whose a good token is.
func NewTokens(client TokenReviewer, ttl time.Duration, now func() time.Time) *Tokens {
	return &Tokens{client: client, ttl: ttl, memory: newMemory[authnv1.UserInfo](now)}
}

// Authenticate implements Authenticator.
func (t *Tokens) Authenticate(r *http.Request) (authnv1.UserInfo, bool, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return authnv1.UserInfo{}, false, nil
	}
	if user, ok := t.memory.get([]byte(token)); ok {
		return user, true, nil
	}
	review, err := t.client.ReviewToken(r.Context(), &authnv1.TokenReview{Spec: authnv1.TokenReviewSpec{Token: token}})
	if err != nil {
		return authnv1.UserInfo{}, false, fmt.Errorf("review a token: %w", err)
	}
	if !review.Status.Authenticated {
		return authnv1.UserInfo{}, false, errors.New("invalid bearer token")
	}
	t.memory.put([]byte(token), review.Status.User, t.ttl)
	return review.Status.User, true, nil
}
