// Package guard is who may use the HTTPS server of kube-controller-manager and kube-scheduler: the flags about it, and
// the handler that stands before the server's paths. Other components do without the package and what it brings along.
package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	authzv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/authorities"
	"bonsai/pkg/delegated"
)

// Guard lets those requests through whose user may use the path: the verb is the HTTP method in lower case. Refusals
// are Status objects as the API server's.
type Guard struct {
	Authenticator delegated.Authenticator
	Authorizer    delegated.Authorizer
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
			g.Log.Info("request not authenticated", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "err",
				err)
			refuse(w, apierrors.NewUnauthorized("Unauthorized"))
			return
		}
		r.Header.Del("Authorization")
		what := &authzv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)}
		allowed, reason, err := g.Authorizer.Authorize(r.Context(), user, delegated.Attributes{Path: what})
		switch {
		case allowed:
			next.ServeHTTP(w, r)
		case err != nil:
			g.Log.Error("request not authorized", "user", user.Username, "verb", what.Verb, "path", what.Path, "err",
				err)
			http.Error(w, fmt.Sprintf("Internal Server Error: %q", what.Path), http.StatusInternalServerError)
		default:
			g.Log.Info("request forbidden", "user", user.Username, "verb", what.Verb, "path", what.Path)
			refuse(w, apierrors.NewForbidden(schema.GroupResource{}, "", forbidden(user.Username, what, reason)))
		}
	})
}

func forbidden(user string, what *authzv1.NonResourceAttributes, reason string) error {
	err := fmt.Errorf("User %q cannot %s path %q", user, what.Verb, what.Path)
	if reason != "" {
		err = fmt.Errorf("%w: %s", err, reason)
	}
	return err
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
