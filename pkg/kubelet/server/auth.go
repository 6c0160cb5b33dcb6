package server

import (
	"context"
	"net/http"
	"strings"

	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"

	"bonsai/pkg/delegated"
)

type userKey struct{}

func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok, err := s.cfg.Authenticator.Authenticate(r)
		if !ok {
			s.cfg.Log.Info("request not authenticated", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "err", err)
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		r.Header.Del("Authorization")
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

func (s *Server) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, _ := r.Context().Value(userKey{}).(authnv1.UserInfo)
		var last authzv1.ResourceAttributes
		for _, sub := range subresources(r.URL.Path) {
			last = authzv1.ResourceAttributes{Verb: verb(r.Method), Version: "v1", Resource: "nodes", Subresource: sub, Name: s.cfg.NodeName}
			allowed, _, err := s.cfg.Authorizer.Authorize(r.Context(), user, delegated.Attributes{Resource: &last})
			if err != nil {
				s.cfg.Log.Error("request not authorized", "user", user.Username, "verb", last.Verb, "subresource", sub, "err", err)
				http.Error(w, "Authorization error (user="+user.Username+", verb="+last.Verb+", resource=nodes, subresource="+sub+")", http.StatusInternalServerError)
				return
			}
			if allowed {
				next.ServeHTTP(w, r)
				return
			}
		}
		s.cfg.Log.Info("request forbidden", "user", user.Username, "verb", last.Verb, "subresource", last.Subresource)
		http.Error(w, "Forbidden (user="+user.Username+", verb="+last.Verb+", resource=nodes, subresource="+last.Subresource+")", http.StatusForbidden)
	})
}

// subresources are those of the node that give access to a path: any one suffices. Read-only paths have one of their own beside
// "proxy", which stands for everything, exec included.
func subresources(path string) []string {
	switch under := func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") }; {
	case under("/stats"):
		return []string{"stats"}
	case under("/metrics"):
		return []string{"metrics"}
	case under("/logs"):
		return []string{"log"}
	case under("/checkpoint"):
		return []string{"checkpoint"}
	case under("/pods"), under("/runningpods"):
		return []string{"pods", "proxy"}
	case under("/healthz"):
		return []string{"healthz", "proxy"}
	case under("/configz"):
		return []string{"configz", "proxy"}
	}
	return []string{"proxy"}
}

func verb(method string) string {
	switch method {
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
