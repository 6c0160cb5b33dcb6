// Package guard is who may use the HTTPS server of kube-controller-manager, kube-scheduler and bonsai-traces: the flags
// about it, and the handler that stands before the server's paths. Other components do without the package and what it
// brings along.
package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/authorities"
	"bonsai/pkg/connlimit"
	"bonsai/pkg/delegated"
	"bonsai/pkg/safetext"
)

// Guard lets those requests through whose user may use the path: the verb is the HTTP method in lower case. Refusals
// are Status objects as the API server's.
type Guard struct {
	Authenticator delegated.Authenticator
	Authorizer    delegated.Authorizer
	// Everybody allows what needs no right, which Authorizer allows, too; nil: nothing. It proves nothing about a
	// client, whose connection has to make room for others (connlimit.Untrusted).
	Everybody delegated.Authorizer
	// Attributes says what a request wants to do, on a server that has resources; nil: something with its path.
	Attributes func(*http.Request) delegated.Attributes
	// Clients are the authorities whose certificates clients are to be asked for.
	Clients *authorities.Set
	Log     *slog.Logger

	follow func(context.Context) // nil: nothing is published for this guard
}

// Run follows whose certificates the API server says to believe, until ctx ends.
func (g *Guard) Run(ctx context.Context) {
	if g.follow != nil {
		g.follow(ctx)
	}
}

// Wrap puts the guard before a handler.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok, err := g.Authenticator.Authenticate(r)
		if !ok {
			g.Log.Info("request not authenticated", "method", safetext.Text(r.Method),
				"path", safetext.Text(r.URL.Path), "from", r.RemoteAddr, "err", err)
			refuse(w, apierrors.NewUnauthorized("Unauthorized"))
			return
		}
		r.Header.Del("Authorization")
		what := g.attributes(r)
		allowed, reason, err := g.Authorizer.Authorize(r.Context(), user, what)
		switch {
		case allowed:
			if user.Username != delegated.AnonymousUser && !g.everybodyMay(r.Context(), what) {
				connlimit.Trust(r.Context())
			}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
		case err != nil:
			g.Log.Error("request not authorized", "user", user.Username, "method", safetext.Text(r.Method),
				"path", safetext.Text(r.URL.Path), "err", err)
			http.Error(w, fmt.Sprintf("Internal Server Error: %q", r.URL.Path), http.StatusInternalServerError)
		default:
			g.Log.Info("request forbidden", "user", user.Username, "method", safetext.Text(r.Method),
				"path", safetext.Text(r.URL.Path))
			refuse(w, forbidden(user.Username, what, reason))
		}
	})
}

func (g *Guard) everybodyMay(ctx context.Context, what delegated.Attributes) bool {
	if g.Everybody == nil {
		return false
	}
	allowed, _, err := g.Everybody.Authorize(ctx, authnv1.UserInfo{}, what)
	return allowed && err == nil
}

// userKey is the key of a request's user in its context.
type userKey struct{}

// UserOf returns the user of a request that came through Wrap.
func UserOf(r *http.Request) (user authnv1.UserInfo, ok bool) {
	user, ok = r.Context().Value(userKey{}).(authnv1.UserInfo)
	return user, ok
}

// May reports whether the user of a request that came through Wrap may also do something else.
func (g *Guard) May(r *http.Request, what delegated.Attributes) (bool, error) {
	user, ok := UserOf(r)
	if !ok {
		return false, nil
	}
	allowed, _, err := g.Authorizer.Authorize(r.Context(), user, what)
	if err != nil {
		g.Log.Error("request not authorized", "user", user.Username, "path", safetext.Text(r.URL.Path), "err", err)
	}
	return allowed, err
}

func (g *Guard) attributes(r *http.Request) delegated.Attributes {
	if g.Attributes != nil {
		return g.Attributes(r)
	}
	return delegated.Attributes{Path: &authzv1.NonResourceAttributes{Path: r.URL.Path,
		Verb: strings.ToLower(r.Method)}}
}

// forbidden is a refusal in the API server's words.
func forbidden(user string, what delegated.Attributes, reason string) *apierrors.StatusError {
	object, name := schema.GroupResource{}, ""
	var err error
	if res := what.Resource; res != nil {
		object, name = schema.GroupResource{Group: res.Group, Resource: res.Resource}, res.Name
		resource := res.Resource
		if res.Subresource != "" {
			resource += "/" + res.Subresource
		}
		where := "at the cluster scope"
		if res.Namespace != "" {
			where = fmt.Sprintf("in the namespace %q", res.Namespace)
		}
		err = fmt.Errorf("User %q cannot %s resource %q in API group %q %s", user, res.Verb, resource, res.Group, where)
	} else {
		err = fmt.Errorf("User %q cannot %s path %q", user, what.Path.Verb, what.Path.Path)
	}
	if reason != "" {
		err = fmt.Errorf("%w: %s", err, reason)
	}
	return apierrors.NewForbidden(object, name, err)
}

func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Cache-Control", "no-cache, private")
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(int(status.Code))
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	// A failed write means that the client is gone.
	_ = out.Encode(status)
}
