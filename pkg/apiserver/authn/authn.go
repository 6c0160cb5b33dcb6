// Package authn finds out who makes a request. An Authenticator is one method (client certificate, bearer token, …),
// each in a subpackage; Union asks them in order.
package authn

import (
	"net/http"

	"bonsai/pkg/apiserver/request"
)

// Authenticator recognises callers by one method.
type Authenticator interface {
	// Authenticate returns the caller; (nil, nil) when the request carries no credential of this method, so that the
	// next one is asked; an error when it carries one that is not valid. Errors never quote a credential.
	Authenticate(r *http.Request) (*request.User, error)
}
