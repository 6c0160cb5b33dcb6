package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"

	"bonsai/pkg/connlimit"
	"bonsai/pkg/delegated"
	"bonsai/pkg/safetext"
	"bonsai/pkg/zpages"
)

type userKey struct{}

// authenticated finds out who asks, and removes the token from the request: no handler behind it, and no log, may see
// it.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok, err := s.cfg.Authenticator.Authenticate(r)
		if !ok {
			s.cfg.Log.Info("request not authenticated", "method", safetext.Text(r.Method),
				"path", safetext.Text(r.URL.Path), "from", r.RemoteAddr, "err", err)
			w.Header().Set("Connection", "close") // and a body is not waited for
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// authorized asks for each subresource that gives access to the path until one is allowed. An error of the authorizer
// refuses the request.
func (s *Server) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _ := r.Context().Value(userKey{}).(authnv1.UserInfo)
		verb, subs := verb(r), subresources(r.URL.Path)
		asked := fmt.Sprintf("(user=%s, verb=%s, resource=nodes, subresource(s)=%v)", user.Username, verb, subs)
		for _, sub := range subs {
			allowed, _, err := s.cfg.Authorizer.Authorize(r.Context(), user,
				delegated.Attributes{Resource: &authzv1.ResourceAttributes{Verb: verb, Version: "v1",
					Resource: "nodes", Subresource: sub, Name: s.cfg.NodeName}})
			if err != nil {
				s.cfg.Log.Error("request not authorized", "user", user.Username, "verb", verb, "subresource", sub,
					"err", err)
				http.Error(w, "Authorization error "+asked, http.StatusInternalServerError)
				return
			}
			if allowed {
				if user.Username != delegated.AnonymousUser {
					connlimit.Trust(r.Context())
				}
				next.ServeHTTP(w, r)
				return
			}
		}
		s.cfg.Log.Info("request forbidden", "user", user.Username, "verb", verb, "subresources", subs)
		http.Error(w, "Forbidden "+asked, http.StatusForbidden)
	})
}

// under reports whether path is p or lies below it.
func under(path, p string) bool { return path == p || strings.HasPrefix(path, p+"/") }

// subresources returns the subresources of the node that give access to a path; any one suffices. "proxy" stands for
// everything, exec included, except for what Kubernetes gives with a subresource of its own only.
func subresources(path string) []string {
	switch {
	case under(path, "/stats"):
		return []string{"stats"}
	case under(path, "/metrics"):
		return []string{"metrics"}
	case under(path, "/logs"):
		return []string{"log"}
	case under(path, "/checkpoint"):
		return []string{"checkpoint"}
	case under(path, "/pods"), under(path, "/runningpods"):
		return []string{"pods", "proxy"}
	case under(path, "/healthz"):
		return []string{"healthz", "proxy"}
	case under(path, "/configz"):
		return []string{"configz", "proxy"}
	case under(path, zpages.FlagzPath): // flags are configuration
		return []string{"configz"}
	case under(path, zpages.StatuszPath):
		return []string{"statusz"}
	}
	return []string{"proxy"}
}

// verb returns what a request does to the node. A request that runs something in a pod, or opens a connection into it,
// is "create" whatever its method: a WebSocket begins with a GET, and a user who may only read nodes/proxy must not be
// able to exec. The same holds for every other upgrade.
func verb(r *http.Request) string {
	if runsInPod(r.URL.Path) || httpstream.IsUpgradeRequest(r) {
		return "create"
	}
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return "get"
}

func runsInPod(path string) bool {
	return under(path, "/exec") || under(path, "/attach") || under(path, "/portForward") || under(path, "/run")
}
