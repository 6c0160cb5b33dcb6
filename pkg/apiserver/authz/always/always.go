// Package always holds the two authorization modes that look at nothing: AlwaysAllow and AlwaysDeny.
package always

import (
	"context"

	"bonsai/pkg/apiserver/authz"
)

// Allow allows everything.
type Allow struct{}

// Deny has no good word for anybody: it never allows, and leaves the answer to the modes after it.
type Deny struct{}

var (
	_ authz.Authorizer = Allow{}
	_ authz.Authorizer = Deny{}
)

// Authorize implements authz.Authorizer.
func (Allow) Authorize(context.Context, authz.Attributes) (authz.Decision, string, error) {
	return authz.Allow, "", nil
}

// Authorize implements authz.Authorizer.
func (Deny) Authorize(context.Context, authz.Attributes) (authz.Decision, string, error) {
	return authz.NoOpinion, "Everything is forbidden.", nil
}
