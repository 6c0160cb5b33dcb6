package delegated

import (
	"errors"
	"net/http"

	authnv1 "k8s.io/api/authentication/v1"
)

// Union asks its authenticators in order; the first that knows the user decides. Errors count only if none knows the
// user.
type Union []Authenticator

var _ Authenticator = Union(nil)

// Authenticate implements Authenticator.
func (u Union) Authenticate(r *http.Request) (authnv1.UserInfo, bool, error) {
	var failed []error
	for _, a := range u {
		user, ok, err := a.Authenticate(r)
		if ok {
			return user, true, nil
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	return authnv1.UserInfo{}, false, errors.Join(failed...)
}

// AnonymousUser is the name of users whom nobody knows.
const AnonymousUser = "system:anonymous"

// Anonymous takes those whom Known does not know for AnonymousUser. Bad credentials do not make anybody anonymous.
type Anonymous struct{ Known Authenticator }

var _ Authenticator = Anonymous{}

// Authenticate implements Authenticator.
func (a Anonymous) Authenticate(r *http.Request) (authnv1.UserInfo, bool, error) {
	user, ok, err := a.Known.Authenticate(r)
	if ok || err != nil {
		return user, ok, err
	}
	return authnv1.UserInfo{Username: AnonymousUser, Groups: []string{"system:unauthenticated"}}, true, nil
}
