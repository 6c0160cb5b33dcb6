// Package anonymous lets callers without a credential in as system:anonymous, on chosen paths only.
package anonymous

import (
	"net/http"
	"slices"

	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/request"
)

// Authenticator takes every caller for system:anonymous.
type Authenticator struct {
	// Paths are the exact URL paths that are open; nil opens all of them.
	Paths []string
}

var _ authn.Authenticator = Authenticator{}

// HealthAndVersion are the paths that say nothing but whether and what the server is. The paths of a single check
// ("/livez/etcd") are not among them.
func HealthAndVersion() []string {
	return []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}
}

// Authenticate implements authn.Authenticator; put it after all the others (authn.OrElse).
func (a Authenticator) Authenticate(r *http.Request) (*request.User, error) {
	if a.Paths != nil && !slices.Contains(a.Paths, r.URL.Path) {
		return nil, nil
	}
	return &request.User{Name: request.AnonymousUser, Groups: []string{request.GroupUnauthenticated}}, nil
}
