package authz

import (
	"context"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"bonsai/pkg/apiserver/request"
)

// OnSigner reports whether a user has a verb ("approve", "attest", "sign") on a signer of certificates
// ("example.com/s"), or on all of its domain ("example.com/*"). Signers are no objects: a rule names them as
// resourceNames of the resource signers.
func OnSigner(ctx context.Context, authorizer Authorizer, user *request.User, verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		d, _, _ := authorizer.Authorize(ctx, Attributes{User: user, Info: request.Info{
			IsResource: true, Verb: verb, APIGroup: certificatesv1.GroupName, APIVersion: "*", Resource: "signers",
			Name: name}})
		if d == Allow {
			return true
		}
	}
	return false
}
