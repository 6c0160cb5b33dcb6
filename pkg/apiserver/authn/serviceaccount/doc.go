// Package serviceaccount makes, checks and publishes the keys of service account tokens: JSON web tokens that the API
// server signs for a service account, bound to audiences, to a time and to the object they were made for. The claims
// are Kubernetes' own, so tokens of one server are good at the other.
package serviceaccount

import "bonsai/pkg/apiserver/request"

// Names in tokens and users.
const (
	// UserPrefix starts the user name of a service account: system:serviceaccount:<namespace>:<name>.
	UserPrefix = request.ServiceAccountPrefix
	// GroupPrefix starts the group of all service accounts of a namespace.
	GroupPrefix = "system:serviceaccounts:"
	// LegacyIssuer is the issuer in tokens kept in secrets of type kubernetes.io/service-account-token; those never
	// end.
	LegacyIssuer = "kubernetes/serviceaccount"

	// The extra attributes of the user that say what the token is bound to.
	ExtraCredentialID = "authentication.kubernetes.io/credential-id"
	ExtraNodeName     = request.ExtraNodeName
	ExtraNodeUID      = "authentication.kubernetes.io/node-uid"
	ExtraPodName      = "authentication.kubernetes.io/pod-name"
	ExtraPodUID       = "authentication.kubernetes.io/pod-uid"
)

// Username returns the user name of a service account.
func Username(namespace, name string) string { return UserPrefix + namespace + ":" + name }

// Groups returns the groups of a service account of namespace.
func Groups(namespace string) []string {
	return []string{"system:serviceaccounts", GroupPrefix + namespace}
}
