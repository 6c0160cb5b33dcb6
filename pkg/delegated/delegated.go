// Package delegated decides who may use a component's own HTTPS server by asking the API server: whose a token is
// (TokenReview) and whether he may do what he asks for (SubjectAccessReview). Client certificates are verified here,
// against the authorities of a file or those that the API server publishes. What an HTTP request means as an attribute
// of authorization, and how a refusal looks, is the business of each server.
//
// The rules: https://kubernetes.io/docs/reference/access-authn-authz/kubelet-authn-authz/ and the reference of the
// flags --authentication-kubeconfig and --authorization-kubeconfig.
package delegated

import (
	"context"
	"net/http"

	authnv1 "k8s.io/api/authentication/v1"
	authzv1 "k8s.io/api/authorization/v1"
)

// Authenticator tells who sends a request; ok is false if it does not know. The error says why credentials were not
// accepted.
type Authenticator interface {
	Authenticate(r *http.Request) (user authnv1.UserInfo, ok bool, err error)
}

// Attributes are what a user wants to do: something with a resource, or something with a path. Exactly one is set.
type Attributes struct {
	Resource *authzv1.ResourceAttributes
	Path     *authzv1.NonResourceAttributes
}

// Authorizer decides whether a user may do something. Not allowed without an error is a decision; an error is none.
type Authorizer interface {
	Authorize(ctx context.Context, user authnv1.UserInfo, a Attributes) (allowed bool, reason string, err error)
}
