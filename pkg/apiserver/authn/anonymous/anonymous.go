// Package anonymous lets callers without a credential in as system:anonymous, on chosen paths only.
package anonymous

import (
	"net/http"
	"slices"

	"bonsai/api/bootstraptoken"
	"bonsai/pkg/apiserver/authn"
	"bonsai/pkg/apiserver/request"
)

// Authenticator takes every caller for system:anonymous.
type Authenticator struct {
	// Open reports whether a URL path is open.
	Open func(path string) bool
}

var _ authn.Authenticator = Authenticator{}

// Only opens exact paths.
func Only(paths ...string) func(path string) bool {
	return func(path string) bool { return slices.Contains(paths, path) }
}

// HealthAndVersion are the paths that say nothing but whether and what the server is. The paths of a single check
// ("/livez/etcd") are not among them.
func HealthAndVersion() []string {
	return []string{"/healthz", "/livez", "/readyz", "/version", "/version/"}
}

// Discovery are the paths of what a cluster says of itself to those who are to join it, who have nothing yet but a
// token to check it by.
func Discovery() []string {
	return []string{"/api/v1/namespaces/kube-public/configmaps/" + bootstraptoken.ClusterInfo}
}

// Authenticate implements authn.Authenticator; put it after all the others (authn.OrElse).
func (a Authenticator) Authenticate(r *http.Request) (*request.User, error) {
	if !a.Open(r.URL.Path) {
		return nil, nil
	}
	return &request.User{Name: request.AnonymousUser, Groups: []string{request.GroupUnauthenticated}}, nil
}
