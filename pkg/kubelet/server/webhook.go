package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/lru"
)

// Answers of the API server are remembered for these times (authentication.webhook.cacheTTL, authorization.webhook.cache...TTL),
// and no more than this many of them.
const (
	tokenTTL   = 2 * time.Minute
	allowedTTL = 5 * time.Minute
	deniedTTL  = 30 * time.Second
	cacheSize  = 4096
)

// TokenReviewer asks the API server whose a token is.
type TokenReviewer interface {
	ReviewToken(ctx context.Context, r *authnv1.TokenReview) (*authnv1.TokenReview, error)
}

// AccessReviewer asks the API server whether a user may do something.
type AccessReviewer interface {
	ReviewAccess(ctx context.Context, r *authzv1.SubjectAccessReview) (*authzv1.SubjectAccessReview, error)
}

// remembered is an answer and until when it holds.
type remembered[T any] struct {
	answer T
	until  time.Time
}

// Tokens authenticates bearer tokens by a TokenReview.
type Tokens struct {
	client TokenReviewer
	now    func() time.Time
	cache  *lru.Cache // SHA-256 of the token -> remembered[UserInfo]
}

// NewTokens returns an authenticator that asks the API server.
func NewTokens(client TokenReviewer, now func() time.Time) *Tokens {
	return &Tokens{client: client, now: now, cache: lru.New(cacheSize)}
}

// Authenticate implements Authenticator.
func (t *Tokens) Authenticate(r *http.Request) (authnv1.UserInfo, bool, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return authnv1.UserInfo{}, false, nil
	}
	key := sha256.Sum256([]byte(token))
	if v, ok := t.cache.Get(key); ok {
		if got := v.(remembered[authnv1.UserInfo]); t.now().Before(got.until) {
			return got.answer, true, nil
		}
	}
	review, err := t.client.ReviewToken(r.Context(), &authnv1.TokenReview{Spec: authnv1.TokenReviewSpec{Token: token}})
	if err != nil {
		return authnv1.UserInfo{}, false, fmt.Errorf("review a token: %w", err)
	}
	if !review.Status.Authenticated {
		return authnv1.UserInfo{}, false, errors.New("invalid bearer token")
	}
	t.cache.Add(key, remembered[authnv1.UserInfo]{review.Status.User, t.now().Add(tokenTTL)})
	return review.Status.User, true, nil
}

// Reviews authorizes by a SubjectAccessReview.
type Reviews struct {
	client AccessReviewer
	now    func() time.Time
	cache  *lru.Cache // JSON of the review's spec -> remembered[decision]
}

type decision struct {
	allowed bool
	reason  string
}

// NewReviews returns an authorizer that asks the API server.
func NewReviews(client AccessReviewer, now func() time.Time) *Reviews {
	return &Reviews{client: client, now: now, cache: lru.New(cacheSize)}
}

// Authorize implements Authorizer.
func (a *Reviews) Authorize(ctx context.Context, user authnv1.UserInfo, attributes authzv1.ResourceAttributes) (bool, string, error) {
	spec := authzv1.SubjectAccessReviewSpec{User: user.Username, UID: user.UID, Groups: user.Groups, ResourceAttributes: &attributes}
	if len(user.Extra) > 0 {
		spec.Extra = make(map[string]authzv1.ExtraValue, len(user.Extra))
		for k, v := range user.Extra {
			spec.Extra[k] = authzv1.ExtraValue(v)
		}
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return false, "", fmt.Errorf("encode the access review: %w", err)
	}
	key := sha256.Sum256(raw)
	if v, ok := a.cache.Get(key); ok {
		if got := v.(remembered[decision]); a.now().Before(got.until) {
			return got.answer.allowed, got.answer.reason, nil
		}
	}
	review, err := a.client.ReviewAccess(ctx, &authzv1.SubjectAccessReview{Spec: spec})
	if err != nil {
		return false, "", fmt.Errorf("review access: %w", err)
	}
	d, ttl := decision{review.Status.Allowed, review.Status.Reason}, deniedTTL
	if d.allowed {
		ttl = allowedTTL
	}
	a.cache.Add(key, remembered[decision]{d, a.now().Add(ttl)})
	return d.allowed, d.reason, nil
}
