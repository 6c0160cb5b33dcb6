package reviews_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/registry/reviews"
	"bonsai/pkg/apiserver/request"
)

// getter lets "jane" get pods in "default", denies "joe" everything, and knows the token "good" for audience "api".
type getter struct{}

func (getter) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	switch {
	case a.User.Name == "joe":
		return authz.Deny, "never", nil
	case a.User.Name == "jane" && a.IsResource && a.Verb == "get" && a.Resource == "pods" && a.Namespace == "default":
		return authz.Allow, "because", nil
	case a.User.Name == "jane" && !a.IsResource && a.Path == "/version":
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", errors.New("broken rule")
}

func (getter) AuthenticateToken(_ context.Context, token string, audiences []string) (*request.User, []string, error) {
	switch token {
	case "good":
		return &request.User{Name: "jane", Extra: map[string][]string{"k": {"v"}}}, audiences, nil
	case "static":
		return &request.User{Name: "jane"}, nil, nil
	case "expired":
		return nil, nil, errors.New("token has expired")
	}
	return nil, nil, nil
}

func (getter) ReviewRules(context.Context, *request.User, string) authorizationv1.SubjectRulesReviewStatus {
	return authorizationv1.SubjectRulesReviewStatus{Incomplete: true}
}

func TestSubjectAccessReview(t *testing.T) {
	t.Parallel()
	pods := &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "get", Resource: "pods"}
	for _, c := range []struct {
		name            string
		spec            authorizationv1.SubjectAccessReviewSpec
		allowed, denied bool
		broken, invalid bool
	}{
		{name: "allowed", spec: authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: pods},
			allowed: true},
		{name: "denied", spec: authorizationv1.SubjectAccessReviewSpec{User: "joe", ResourceAttributes: pods},
			denied: true},
		{name: "no opinion", spec: authorizationv1.SubjectAccessReviewSpec{Groups: []string{"g"},
			ResourceAttributes: pods}, broken: true},
		{name: "path", spec: authorizationv1.SubjectAccessReviewSpec{User: "jane",
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/version", Verb: "get"}},
			allowed: true},
		{name: "nobody", spec: authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: pods}, invalid: true},
		{name: "nothing", spec: authorizationv1.SubjectAccessReviewSpec{User: "jane"}, invalid: true},
		{name: "both", spec: authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: pods,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{}}, invalid: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := reviews.NewSubjectAccessReview(getter{}).Create(t.Context(), "", "",
				&authorizationv1.SubjectAccessReview{Spec: c.spec}, nil)
			if c.invalid {
				if !apierrors.IsInvalid(err) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if s := out.(*authorizationv1.SubjectAccessReview).Status; s.Allowed != c.allowed || s.Denied != c.denied ||
				(s.EvaluationError != "") != c.broken {
				t.Errorf("status %+v", s)
			}
		})
	}
	local := &authorizationv1.LocalSubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: pods}}
	if _, err := reviews.NewLocalSubjectAccessReview(getter{}).Create(t.Context(), "kube-system", "", local,
		nil); !apierrors.IsInvalid(err) {
		t.Errorf("review of another namespace: %v", err)
	}
}

func TestOwnRights(t *testing.T) {
	t.Parallel()
	ctx := request.WithUser(t.Context(), &request.User{Name: "jane"})
	ask := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "get", Resource: "pods"}}}
	out, err := reviews.NewSelfSubjectAccessReview(getter{}).Create(ctx, "", "", ask, nil)
	if err != nil || !out.(*authorizationv1.SelfSubjectAccessReview).Status.Allowed {
		t.Errorf("%+v, %v", out, err)
	}
	rules := &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}
	out, err = reviews.NewSelfSubjectRulesReview(getter{}).Create(ctx, "", "", rules, nil)
	if err != nil || out.(*authorizationv1.SelfSubjectRulesReview).Status.ResourceRules == nil ||
		!out.(*authorizationv1.SelfSubjectRulesReview).Status.Incomplete {
		t.Errorf("%+v, %v", out, err)
	}
	who, err := reviews.NewSelfSubjectReview(time.Now).Create(ctx, "", "", &authenticationv1.SelfSubjectReview{}, nil)
	if err != nil || who.(*authenticationv1.SelfSubjectReview).Status.UserInfo.Username != "jane" {
		t.Errorf("%+v, %v", who, err)
	}
}

func TestTokenReview(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]struct {
		ok      bool
		message string
	}{"good": {ok: true}, "expired": {message: "token has expired"}, "unknown": {message: "invalid bearer token"}} {
		out, err := reviews.NewTokenReview(getter{}, []string{"api"}).Create(t.Context(), "", "",
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := out.(*authenticationv1.TokenReview).Status
		if s.Authenticated != want.ok || s.Error != want.message {
			t.Errorf("%s: %+v", token, s)
		}
		if want.ok && (s.User.Groups[0] != request.GroupAuthenticated || s.User.Extra["k"][0] != "v" ||
			s.Audiences[0] != "api") {
			t.Errorf("%s: %+v", token, s)
		}
	}
	if _, err := reviews.NewTokenReview(getter{}, nil).Create(t.Context(), "", "", &authenticationv1.TokenReview{},
		nil); !apierrors.IsBadRequest(err) {
		t.Errorf("no token: %v", err)
	}
}

// TestTokenForThisServer: a token that names no audience is for the API server itself and for nobody else.
func TestTokenForThisServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		audiences []string
		want      bool
	}{{nil, true}, {[]string{"api"}, true}, {[]string{"other", "api"}, true}, {[]string{"other"}, false}} {
		in := &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: "static", Audiences: c.audiences}}
		out, err := reviews.NewTokenReview(getter{}, []string{"api"}).Create(t.Context(), "", "", in, nil)
		if err != nil {
			t.Fatal(err)
		}
		s := out.(*authenticationv1.TokenReview).Status
		if s.Authenticated != c.want || c.want && !slices.Equal(s.Audiences, []string{"api"}) ||
			!c.want && s.Error != "invalid bearer token" {
			t.Errorf("%v: %+v", c.audiences, s)
		}
	}
}

// TestReviewsRefuse: a review has no metadata, and limits what it asks about in one form.
func TestReviewsRefuse(t *testing.T) {
	t.Parallel()
	ctx := request.WithUser(t.Context(), &request.User{Name: "jane"})
	pods := func() *authorizationv1.ResourceAttributes {
		return &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "list", Resource: "pods"}
	}
	for name, c := range map[string]struct {
		change func(*authorizationv1.SelfSubjectAccessReview)
		want   string
	}{
		"a name": {func(r *authorizationv1.SelfSubjectAccessReview) { r.Name = "x" }, "must be empty"},
		"both forms": {func(r *authorizationv1.SelfSubjectAccessReview) {
			r.Spec.ResourceAttributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: "a=b",
				Requirements: []metav1.FieldSelectorRequirement{{Key: "a", Operator: "In"}}}
		}, `spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: "a=b": may not specified at the same time as requirements`},
	} {
		in := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: pods()}}
		c.change(in)
		if _, err := reviews.NewSelfSubjectAccessReview(getter{}).Create(ctx, "", "", in,
			nil); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	local := &authorizationv1.LocalSubjectAccessReview{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: map[string]string{"a": "b"}},
		Spec:       authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: pods()}}
	if _, err := reviews.NewLocalSubjectAccessReview(getter{}).Create(ctx, "default", "", local, nil); err == nil ||
		!strings.Contains(err.Error(), "must be empty except for namespace") {
		t.Errorf("local: %v", err)
	}
}

// selecting allows lists of what one field selector selects.
type selecting string

func (s selecting) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	if a.Verb == "list" && a.FieldSelector == string(s) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// A review of a list or watch is about what its field selector selects, as the request itself: a node may list the pods
// that are its own.
func TestFieldSelector(t *testing.T) {
	t.Parallel()
	is := func(op metav1.FieldSelectorOperator, values ...string) []metav1.FieldSelectorRequirement {
		return []metav1.FieldSelectorRequirement{{Key: "spec.nodeName", Operator: op, Values: values}}
	}
	for _, c := range []struct {
		by   *authorizationv1.FieldSelectorAttributes
		want string
	}{
		{nil, ""},
		{&authorizationv1.FieldSelectorAttributes{RawSelector: "spec.nodeName=n1"}, "spec.nodeName=n1"},
		{&authorizationv1.FieldSelectorAttributes{Requirements: is(metav1.FieldSelectorOpIn, "n1")},
			"spec.nodeName=n1"},
		{&authorizationv1.FieldSelectorAttributes{Requirements: is(metav1.FieldSelectorOpNotIn, "n1")},
			"spec.nodeName!=n1"},
		{&authorizationv1.FieldSelectorAttributes{Requirements: is(metav1.FieldSelectorOpIn, "n1", "n2")}, ""},
		{&authorizationv1.FieldSelectorAttributes{Requirements: is(metav1.FieldSelectorOpExists)}, ""},
	} {
		for _, want := range []string{c.want, "other=x"} {
			asked := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "u",
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods",
					FieldSelector: c.by}}}
			obj, err := reviews.NewSubjectAccessReview(selecting(want)).Create(t.Context(), "", "", asked, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := obj.(*authorizationv1.SubjectAccessReview).Status.Allowed; got != (want == c.want) {
				t.Errorf("%+v by %q: allowed %v", c.by, want, got)
			}
		}
	}
}
