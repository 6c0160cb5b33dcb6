package delegated

import (
	"context"
	"errors"
	"testing"
	"time"

	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
)

// reviews is the API server: bob may get /metrics and node n1's logs.
type reviews struct {
	asked int
	last  authzv1.SubjectAccessReviewSpec
	err   error
}

func (a *reviews) ReviewAccess(_ context.Context, r *authzv1.SubjectAccessReview) (*authzv1.SubjectAccessReview,
	error) {
	a.asked++
	a.last = r.Spec
	r = r.DeepCopy()
	path, resource := r.Spec.NonResourceAttributes, r.Spec.ResourceAttributes
	r.Status.Reason = "rule 1"
	r.Status.Allowed = r.Spec.User == "bob" &&
		(path != nil && *path == authzv1.NonResourceAttributes{Path: "/metrics", Verb: "get"} ||
			resource != nil && resource.Resource == "nodes" && resource.Subresource == "log" && resource.Name == "n1")
	return r, a.err
}

func path(p string) Attributes {
	return Attributes{Path: &authzv1.NonResourceAttributes{Path: p, Verb: "get"}}
}

var logs = Attributes{Resource: &authzv1.ResourceAttributes{Verb: "get", Resource: "nodes", Subresource: "log",
	Name: "n1"}}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	ttl := ReviewTTL{Allowed: time.Minute, Denied: time.Minute}
	asked := NewReviews(&reviews{}, ttl, time.Now)
	broken := NewReviews(&reviews{err: errors.New("away")}, ttl, time.Now)
	paths, err := NewPaths([]string{"/healthz", "livez", "/public/*"})
	if err != nil {
		t.Fatal(err)
	}
	bob, carol := authnv1.UserInfo{Username: "bob"},
		authnv1.UserInfo{Username: "carol", Groups: []string{"system:masters"}}
	for _, c := range []struct {
		name        string
		by          Authorizer
		user        authnv1.UserInfo
		what        Attributes
		want, error bool
	}{
		{"path", asked, bob, path("/metrics"), true, false},
		{"other path", asked, bob, path("/debug"), false, false},
		{"resource", asked, bob, logs, true, false},
		{"other user", asked, carol, logs, false, false},
		{"no answer", broken, bob, logs, false, true},
		{"always", AlwaysAllow{}, bob, path("/debug"), true, false},
		{"masters", Group("system:masters"), carol, path("/debug"), true, false},
		{"not of the masters", Group("system:masters"), bob, path("/debug"), false, false},
		{"path of all", paths, bob, path("/healthz"), true, false},
		{"below a path of all", paths, bob, path("/healthz/x"), false, false},
		{"path without slash", paths, bob, path("/livez"), true, false},
		{"prefix", paths, bob, path("/public/x"), true, false},
		{"the star itself", paths, bob, path("/publi"), false, false},
		{"paths say nothing of resources", paths, bob, logs, false, false},
		{"nobody allows", AnyOf{}, carol, path("/metrics"), false, false},
		{"the second allows", AnyOf{paths, asked}, bob, path("/metrics"), true, false},
		{"the first allows", AnyOf{paths, broken}, bob, path("/healthz"), true, false},
		{"one cannot tell", AnyOf{paths, broken}, bob, path("/metrics"), false, true},
	} {
		got, _, err := c.by.Authorize(t.Context(), c.user, c.what)
		if got != c.want || (err != nil) != c.error {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
	if _, reason, _ := (AnyOf{asked, paths}).Authorize(t.Context(), carol, logs); reason != "rule 1" {
		t.Errorf("reason %q", reason)
	}
	for _, bad := range []string{"/a/*/b", "/**", ""} {
		if _, err := NewPaths([]string{bad}); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

// TestReviews: the user goes out whole, and decisions are remembered for their times, each user's and each question's
// own.
func TestReviews(t *testing.T) {
	t.Parallel()
	now, server := time.Unix(0, 0), &reviews{}
	a := NewReviews(server, ReviewTTL{Allowed: time.Minute, Denied: 10 * time.Second}, func() time.Time { return now })
	expect := func(step string, user authnv1.UserInfo, what Attributes, asked int) {
		t.Helper()
		if _, _, err := a.Authorize(t.Context(), user, what); err != nil || server.asked != asked {
			t.Errorf("%s: asked %d times, not %d, %v", step, server.asked, asked, err)
		}
	}
	bob := authnv1.UserInfo{Username: "bob", UID: "u", Groups: []string{"g"},
		Extra: map[string]authnv1.ExtraValue{"k": {"v"}}}
	expect("allowed", bob, path("/metrics"), 1)
	if s := server.last; s.User != "bob" || s.UID != "u" || s.Groups[0] != "g" || s.Extra["k"][0] != "v" {
		t.Errorf("%+v", s)
	}
	expect("denied", bob, path("/debug"), 2)
	expect("allowed again", bob, path("/metrics"), 2)
	expect("denied again", bob, path("/debug"), 2)
	expect("another user", authnv1.UserInfo{Username: "bob", Groups: []string{"h"}}, path("/metrics"), 3)
	now = now.Add(10 * time.Second)
	expect("a denial is old", bob, path("/debug"), 4)
	expect("a permission is not", bob, path("/metrics"), 4)
	server.err, now = errors.New("away"), now.Add(time.Hour)
	if ok, _, err := a.Authorize(t.Context(), bob, path("/metrics")); ok || err == nil {
		t.Error("allowed without an answer")
	}
	server.err = nil
	expect("an error is not remembered", bob, path("/metrics"), 6)
}
