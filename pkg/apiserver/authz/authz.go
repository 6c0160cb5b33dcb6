// Package authz decides what a caller may do. An Authorizer is one mode (RBAC, Node, …), each in a subpackage; Union
// asks them in order.
package authz

import (
	"context"

	"bonsai/pkg/apiserver/request"
)

// Decision is an authorizer's answer.
type Decision int

// NoOpinion leaves the answer to the next authorizer; at the end of the list it means no.
const (
	NoOpinion Decision = iota
	Allow
	Deny
)

// Attributes is the question: may User do Info?
type Attributes struct {
	User *request.User
	request.Info
}

// Authorizer answers for one mode.
type Authorizer interface {
	// Authorize answers; reason, for people, says why and ends up in the 403's message. An error goes with NoOpinion
	// and is reported, not fatal, while another authorizer allows.
	Authorize(ctx context.Context, a Attributes) (d Decision, reason string, err error)
}
