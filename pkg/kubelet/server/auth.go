package server

import (
	"context"
	"crypto/x509"
	"net/http"
	"strings"

	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
)

// Authenticator tells who sends a request; ok is false if it does not know. The error says why credentials were not accepted.
type Authenticator interface {
	Authenticate(r *http.Request) (user authnv1.UserInfo, ok bool, err error)
}

// Authorizer decides whether a user may do something with the node.
type Authorizer interface {
	Authorize(ctx context.Context, user authnv1.UserInfo, a authzv1.ResourceAttributes) (allowed bool, reason string, err error)
}

// Certificates authenticates clients by certificates of a CA: the common name is the user, the organizations are its groups.
type Certificates struct{ Roots *x509.CertPool }

// Authenticate implements Authenticator.
func (c Certificates) Authenticate(r *http.Request) (authnv1.UserInfo, bool, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return authnv1.UserInfo{}, false, nil
	}
	leaf, between := r.TLS.PeerCertificates[0], x509.NewCertPool()
	for _, cert := range r.TLS.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: c.Roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return authnv1.UserInfo{}, false, err
	}
	if leaf.Subject.CommonName == "" {
		return authnv1.UserInfo{}, false, nil
	}
	return authnv1.UserInfo{Username: leaf.Subject.CommonName, Groups: append(append([]string{}, leaf.Subject.Organization...), "system:authenticated")}, true, nil
}

// Anonymous knows everybody, as system:anonymous; it comes last in a union.
type Anonymous struct{}

// Authenticate implements Authenticator.
func (Anonymous) Authenticate(*http.Request) (authnv1.UserInfo, bool, error) {
	return authnv1.UserInfo{Username: "system:anonymous", Groups: []string{"system:unauthenticated"}}, true, nil
}

// Union asks one after the other; the first that knows the user wins. Errors count only if nobody knows.
type Union []Authenticator

// Authenticate implements Authenticator.
func (u Union) Authenticate(r *http.Request) (authnv1.UserInfo, bool, error) {
	var failed error
	for _, a := range u {
		user, ok, err := a.Authenticate(r)
		if ok {
			return user, true, nil
		}
		if err != nil {
			failed = err
		}
	}
	return authnv1.UserInfo{}, false, failed
}

// AlwaysAllow authorizes everything (authorization mode AlwaysAllow).
type AlwaysAllow struct{}

// Authorize implements Authorizer.
func (AlwaysAllow) Authorize(context.Context, authnv1.UserInfo, authzv1.ResourceAttributes) (bool, string, error) {
	return true, "", nil
}

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
			allowed, _, err := s.cfg.Authorizer.Authorize(r.Context(), user, last)
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
