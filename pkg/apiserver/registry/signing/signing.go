// Package signing authorizes answers to PodCertificateRequests (KEP-4317): besides the permission to write the status,
// an answer needs the verb sign on the signer that the request names.
package signing

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
)

// Checker is a registry.Checker of podcertificaterequests.
type Checker struct{ authorizer authz.Authorizer }

var _ registry.Checker = Checker{}

// New returns a Checker that asks authorizer.
func New(authorizer authz.Authorizer) Checker { return Checker{authorizer} }

// CheckUpdate implements registry.Checker. Only the server itself writes without a user, and it may.
func (c Checker) CheckUpdate(ctx context.Context, subresource string, obj, old runtime.Object) field.ErrorList {
	user := request.UserFrom(ctx)
	if subresource != "status" || user == nil {
		return nil
	}
	now, was := obj.(*certificatesv1.PodCertificateRequest), old.(*certificatesv1.PodCertificateRequest)
	if apiequality.Semantic.DeepEqual(now.Status, was.Status) ||
		authz.OnSigner(ctx, c.authorizer, user, "sign", was.Spec.SignerName) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec", "signerName"),
		fmt.Sprintf("User %q is not permitted to %q for signer %q", user.Name, "sign", was.Spec.SignerName))}
}
