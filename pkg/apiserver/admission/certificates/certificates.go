// Package certificates is the admission plug-ins of CertificateSigningRequests and ClusterTrustBundles:
// CertificateApproval and CertificateSigning ask whether the user may approve and sign for the signer that a request
// names, ClusterTrustBundleAttest whether the user may attest for the signer of a bundle, and
// CertificateSubjectRestriction keeps clients out of the group of administrators.
package certificates

import (
	"bytes"
	"context"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/certificates"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// Approval returns the plug-in CertificateApproval.
func Approval(a authz.Authorizer) admission.Plugin {
	return admission.Plugin{Name: "CertificateApproval", Validator: approval{a}}
}

// Signing returns the plug-in CertificateSigning.
func Signing(a authz.Authorizer) admission.Plugin {
	return admission.Plugin{Name: "CertificateSigning", Validator: signing{a}}
}

// Attest returns the plug-in ClusterTrustBundleAttest.
func Attest(a authz.Authorizer) admission.Plugin {
	return admission.Plugin{Name: "ClusterTrustBundleAttest", Validator: attest{a}}
}

// SubjectRestriction returns the plug-in CertificateSubjectRestriction.
func SubjectRestriction() admission.Plugin {
	return admission.Plugin{Name: "CertificateSubjectRestriction", Validator: subjects{}}
}

// requests are those of the operation and subresource, with the old one for an update.
func requests(a *admission.Attributes, op admission.Operation, subresource string) (now,
	old *certificatesv1.CertificateSigningRequest, ok bool) {
	resource := schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}
	if a.Operation != op || a.Subresource != subresource || a.Resource.GroupResource() != resource {
		return nil, nil, false
	}
	now, ok = a.Object.(*certificatesv1.CertificateSigningRequest)
	old, _ = a.OldObject.(*certificatesv1.CertificateSigningRequest)
	return now, old, ok
}

type approval struct{ authorizer authz.Authorizer }

// Validate implements admission.Validator. What counts is the signer that the request was made for.
func (p approval) Validate(ctx context.Context, a *admission.Attributes) error {
	if _, old, ok := requests(a, admission.Update, "approval"); ok && old != nil &&
		!authz.OnSigner(ctx, p.authorizer, a.User, "approve", old.Spec.SignerName) {
		return admission.Forbid(a, "user not permitted to approve requests with signerName %q", old.Spec.SignerName)
	}
	return nil
}

type signing struct{ authorizer authz.Authorizer }

// Validate implements admission.Validator. Only changes of the certificate and of conditions need the permission.
func (p signing) Validate(ctx context.Context, a *admission.Attributes) error {
	now, old, ok := requests(a, admission.Update, "status")
	if !ok || old == nil || bytes.Equal(now.Status.Certificate, old.Status.Certificate) &&
		equality.Semantic.DeepEqual(now.Status.Conditions, old.Status.Conditions) {
		return nil
	}
	if !authz.OnSigner(ctx, p.authorizer, a.User, "sign", old.Spec.SignerName) {
		return admission.Forbid(a, "user not permitted to sign requests with signerName %q", old.Spec.SignerName)
	}
	return nil
}

type attest struct{ authorizer authz.Authorizer }

// Validate implements admission.Validator. Pods trust what a signer's bundle contains, so writing one needs the verb
// attest (KEP-3257). The garbage collector does not have it: updates of owners and finalizers alone need no permission.
func (p attest) Validate(ctx context.Context, a *admission.Attributes) error {
	now, ok := a.Object.(*certificatesv1.ClusterTrustBundle)
	if !ok || a.Subresource != "" || a.Resource.GroupResource() !=
		(schema.GroupResource{Group: certificatesv1.GroupName, Resource: "clustertrustbundles"}) {
		return nil
	}
	if old, ok := a.OldObject.(*certificatesv1.ClusterTrustBundle); ok && collected(now, old) {
		return nil
	}
	if signer := now.Spec.SignerName; signer != "" && !authz.OnSigner(ctx, p.authorizer, a.User, "attest", signer) {
		return admission.Forbid(a, "user not permitted to attest for signerName %q", signer)
	}
	return nil
}

// collected reports whether two bundles differ only in owner references, finalizers and managed fields.
func collected(now, old *certificatesv1.ClusterTrustBundle) bool {
	now = now.DeepCopy()
	now.OwnerReferences, now.Finalizers, now.ManagedFields = old.OwnerReferences, old.Finalizers, old.ManagedFields
	now.ResourceVersion, now.TypeMeta = old.ResourceVersion, old.TypeMeta
	return equality.Semantic.DeepEqual(now, old)
}

type subjects struct{}

// Validate implements admission.Validator.
func (subjects) Validate(_ context.Context, a *admission.Attributes) error {
	now, _, ok := requests(a, admission.Create, "")
	if !ok || now.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	r, err := certificates.ParseRequest(now.Spec.Request)
	if err != nil {
		return admission.Forbid(a, "failed to parse CSR: %v", err)
	}
	if slices.Contains(r.Subject.Organization, request.GroupMasters) {
		return admission.Forbid(a, "use of %s signer with %s group is not allowed", now.Spec.SignerName,
			request.GroupMasters)
	}
	return nil
}
