// Package signers asks for rights on the signers of certificates. They are no objects: a rule names them as
// resourceNames of the resource signers.
package signers

import (
	"context"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// May reports whether a user has a verb ("approve", "attest", "sign") on a signer ("example.com/s"), or on all of its
// domain ("example.com/*").
func May(ctx context.Context, authorizer authz.Authorizer, user *request.User, verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		d, _, _ := authorizer.Authorize(ctx, authz.Attributes{User: user, Info: request.Info{
			IsResource: true, Verb: verb, APIGroup: certificatesv1.GroupName, APIVersion: "*", Resource: "signers",
			Name: name}})
		if d == authz.Allow {
			return true
		}
	}
	return false
}
