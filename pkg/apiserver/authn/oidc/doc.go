// Package oidc recognises JSON web tokens of OpenID providers, by the --oidc-* flags or by the file of
// --authentication-config, whose versions, rules and messages are Kubernetes'
// (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#using-authentication-configuration).
//
// A provider may be dead, slow or hostile: its documents are fetched beside requests, within bounds, and its tokens are
// refused until its keys are known. Nothing of a token counts before one of the keys has verified it, except
// its issuer, which decides whose keys those are.
package oidc
