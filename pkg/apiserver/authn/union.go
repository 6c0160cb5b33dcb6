package authn

import (
	"errors"
	"net/http"
	"slices"

	"bonsai/pkg/apiserver/request"
)

// Union returns an Authenticator that asks each of list in order. The first that knows the caller wins; one that
// objects does not stop the search, but if nobody knows the caller, all objections are reported together.
func Union(list ...Authenticator) Authenticator { return union(list) }

type union []Authenticator

func (u union) Authenticate(r *http.Request) (*request.User, error) {
	var errs []error
	for _, a := range u {
		user, err := a.Authenticate(r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if user != nil {
			return user, nil
		}
	}
	return nil, errors.Join(errs...)
}

// OrElse returns an Authenticator that asks first, and second only for a caller who showed first no credential at all:
// a credential that is not valid is an error and does not make its bearer anonymous.
func OrElse(first, second Authenticator) Authenticator { return orElse{first, second} }

type orElse struct{ first, second Authenticator }

func (o orElse) Authenticate(r *http.Request) (*request.User, error) {
	user, err := o.first.Authenticate(r)
	if user != nil || err != nil {
		return user, err
	}
	return o.second.Authenticate(r)
}

// WithAuthenticatedGroup returns an Authenticator that adds the group system:authenticated to every user a knows.
func WithAuthenticatedGroup(a Authenticator) Authenticator { return grouped{a} }

type grouped struct{ Authenticator }

func (g grouped) Authenticate(r *http.Request) (*request.User, error) {
	user, err := g.Authenticator.Authenticate(r)
	if user == nil || err != nil {
		return nil, err
	}
	return addAuthenticatedGroup(user), nil
}

// addAuthenticatedGroup returns u as a member of system:authenticated, as it is if it is one already or is anonymous. u
// is not changed: authenticators share the users they return.
func addAuthenticatedGroup(u *request.User) *request.User {
	if u.InGroup(request.GroupAuthenticated) || u.InGroup(request.GroupUnauthenticated) {
		return u
	}
	c := *u
	c.Groups = append(slices.Clone(u.Groups), request.GroupAuthenticated)
	return &c
}
