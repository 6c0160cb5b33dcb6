package reviews

import (
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// TokenAuthenticator knows whose a bearer token is. It returns the audiences that both the token and the caller's list
// have, none for a token that names no audience; (nil, nil, nil) means that no method knows the token; an error never
// quotes it.
type TokenAuthenticator interface {
	AuthenticateToken(ctx context.Context, token string, audiences []string) (*request.User, []string, error)
}

// TokenReview answers POST /apis/authentication.k8s.io/v1/tokenreviews.
type TokenReview struct {
	tokens    TokenAuthenticator
	audiences []string
}

var _ registry.Creater = (*TokenReview)(nil)

// NewTokenReview returns the behaviour. audiences are the API server's own, for reviews that name none.
func NewTokenReview(tokens TokenAuthenticator, audiences []string) *TokenReview {
	return &TokenReview{tokens: tokens, audiences: audiences}
}

// New returns an empty TokenReview.
func (r *TokenReview) New() runtime.Object { return &authenticationv1.TokenReview{} }

// Create says whose the token is, in the status. A token that is not valid is an answer, not an error.
func (r *TokenReview) Create(ctx context.Context, _, _ string, obj runtime.Object,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	in, ok := obj.(*authenticationv1.TokenReview)
	if !ok {
		return nil, wrongType("TokenReview", obj)
	}
	if in.Namespace != "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("namespace is not allowed on this type: %v", in.Namespace))
	}
	if in.Spec.Token == "" {
		return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	audiences := in.Spec.Audiences
	if len(audiences) == 0 {
		audiences = r.audiences
	}
	user, shared, err := r.tokens.AuthenticateToken(ctx, in.Spec.Token, audiences)
	out := in.DeepCopy()
	out.Status = authenticationv1.TokenReviewStatus{}
	if err != nil {
		out.Status.Error = err.Error()
		return out, nil
	}
	if user != nil && shared == nil { // a token without audiences is for this server
		if shared = intersect(audiences, r.audiences); shared == nil {
			user = nil
		}
	}
	if user == nil {
		out.Status.Error = "invalid bearer token"
		return out, nil
	}
	out.Status.Authenticated = true
	out.Status.User = userInfo(user)
	if user.Name != request.AnonymousUser && !user.InGroup(request.GroupAuthenticated) {
		out.Status.User.Groups = append(slices.Clone(user.Groups), request.GroupAuthenticated)
	}
	out.Status.Audiences = shared
	return out, nil
}

// intersect returns what want and have share, in want's order.
func intersect(want, have []string) []string {
	var both []string
	for _, a := range want {
		if slices.Contains(have, a) {
			both = append(both, a)
		}
	}
	return both
}

// SelfSubjectReview answers POST /apis/authentication.k8s.io/v1/selfsubjectreviews (kubectl auth whoami).
type SelfSubjectReview struct{ now func() time.Time }

var _ registry.Creater = (*SelfSubjectReview)(nil)

// NewSelfSubjectReview returns the behaviour; now stamps the answer.
func NewSelfSubjectReview(now func() time.Time) *SelfSubjectReview {
	return &SelfSubjectReview{now: now}
}

// New returns an empty SelfSubjectReview.
func (r *SelfSubjectReview) New() runtime.Object { return &authenticationv1.SelfSubjectReview{} }

// Create answers with the caller as the server sees it.
func (r *SelfSubjectReview) Create(ctx context.Context, _, _ string, obj runtime.Object,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	if _, ok := obj.(*authenticationv1.SelfSubjectReview); !ok {
		return nil, wrongType("SelfSubjectReview", obj)
	}
	user := request.UserFrom(ctx)
	if user == nil {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	return &authenticationv1.SelfSubjectReview{
		TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(),
			Kind: "SelfSubjectReview"},
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(r.now())},
		Status:     authenticationv1.SelfSubjectReviewStatus{UserInfo: userInfo(user)},
	}, nil
}

func userInfo(u *request.User) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for k, v := range u.Extra {
		if info.Extra == nil {
			info.Extra = map[string]authenticationv1.ExtraValue{}
		}
		info.Extra[k] = v
	}
	return info
}
