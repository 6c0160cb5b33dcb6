// Package serviceaccount makes, checks and publishes the keys of service account tokens: JSON web tokens that the API
// server signs for a service account, bound to audiences, to a time and to the object they were made for. The claims
// are Kubernetes' own, so tokens of one server are good at the other.
package serviceaccount

import "bonsai/pkg/apiserver/request"

// Names in tokens and users.
const (
	// userPrefix starts the user name of a service account: system:serviceaccount:<namespace>:<name>.
	userPrefix = request.ServiceAccountPrefix
	// groupPrefix starts the group of all service accounts of a namespace.
	groupPrefix = "system:serviceaccounts:"
	// legacyIssuer is the issuer in tokens kept in secrets of type kubernetes.io/service-account-token; those never
	// end.
	legacyIssuer = "kubernetes/serviceaccount"

	// The extra attributes of the user that say what the token is bound to.
	extraCredentialID = "authentication.kubernetes.io/credential-id"
	extraNodeName     = request.ExtraNodeName
	extraNodeUID      = "authentication.kubernetes.io/node-uid"
	extraPodName      = "authentication.kubernetes.io/pod-name"
	extraPodUID       = "authentication.kubernetes.io/pod-uid"

	// issuedCredentialID is the audit annotation that names the token which a request was answered with.
	issuedCredentialID = "authentication.kubernetes.io/issued-credential-id"
)

// username returns the user name of a service account.
func username(namespace, name string) string { return userPrefix + namespace + ":" + name }

// groups returns the groups of a service account of namespace.
func groups(namespace string) []string {
	return []string{"system:serviceaccounts", groupPrefix + namespace}
}
