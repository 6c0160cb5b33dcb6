package certificates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// only allows one verb on one name of signers.
type only struct{ verb, name string }

func (o only) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	if a.IsResource && a.APIGroup == "certificates.k8s.io" && a.Resource == "signers" && a.Verb == o.verb &&
		a.Name == o.name {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

func asked(t *testing.T, signer, organization string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: "c", Organization: []string{organization}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "r"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: signer, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})}}
}

func TestApprovalAndSigning(t *testing.T) {
	t.Parallel()
	old := asked(t, "example.com/x", "o")
	labelled, signed, failed := old.DeepCopy(), old.DeepCopy(), old.DeepCopy()
	labelled.Labels, signed.Status.Certificate = map[string]string{"a": "b"}, []byte("x")
	failed.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: "Failed"}}
	for name, c := range map[string]struct {
		may only
		sub string
		now *certificatesv1.CertificateSigningRequest
		no  string
	}{
		"approve":                {only{"approve", "example.com/x"}, "approval", failed, ""},
		"approve for the domain": {only{"approve", "example.com/*"}, "approval", failed, ""},
		"approve for another signer": {only{"approve", "example.com/y"}, "approval", failed,
			`user not permitted to approve requests with signerName "example.com/x"`},
		"may sign, approves": {only{"sign", "example.com/x"}, "approval", failed,
			`user not permitted to approve`},
		"labels by approval":  {only{}, "approval", labelled, `user not permitted to approve`},
		"sign":                {only{"sign", "example.com/x"}, "status", signed, ""},
		"sign for the domain": {only{"sign", "example.com/*"}, "status", signed, ""},
		"may approve, signs": {only{"approve", "example.com/x"}, "status", signed,
			`user not permitted to sign requests with signerName "example.com/x"`},
		"may approve, says that it fails": {only{"approve", "example.com/x"}, "status", failed,
			`user not permitted to sign`},
		"labels by status":  {only{}, "status", labelled, ""},
		"the object itself": {only{}, "", signed, ""},
	} {
		a := &admission.Attributes{Operation: admission.Update,
			Resource: certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), Name: "r",
			Subresource: c.sub, Object: c.now, OldObject: old, User: &request.User{Name: "bob"}}
		err := Approval(c.may).Validator.Validate(t.Context(), a)
		if err == nil {
			err = Signing(c.may).Validator.Validate(t.Context(), a)
		}
		if (err != nil) != (c.no != "") ||
			err != nil && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), c.no)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSubjectRestriction(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signer, organization string
		denied               bool
	}{
		{certificatesv1.KubeAPIServerClientSignerName, "system:masters", true},
		{certificatesv1.KubeAPIServerClientSignerName, "devs", false},
		{"example.com/x", "system:masters", false},
	} {
		a := &admission.Attributes{Operation: admission.Create,
			Resource: certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), Name: "r",
			Object: asked(t, c.signer, c.organization)}
		err := SubjectRestriction().Validator.Validate(t.Context(), a)
		want := `certificatesigningrequests.certificates.k8s.io "r" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed`
		if (err != nil) != c.denied || err != nil && err.Error() != want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestAttest: the answers are those of a kube-apiserver v1.37.2.
func TestAttest(t *testing.T) {
	t.Parallel()
	type trusted = certificatesv1.ClusterTrustBundle
	bundle := func(signer string, change func(*trusted)) *trusted {
		b := &certificatesv1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: "b"},
			Spec: certificatesv1.ClusterTrustBundleSpec{SignerName: signer}}
		if change != nil {
			change(b)
		}
		return b
	}
	labelled := func(b *trusted) { b.Labels = map[string]string{"a": "b"} }
	for name, c := range map[string]struct {
		may      only
		now, old *certificatesv1.ClusterTrustBundle
		denied   bool
	}{
		"create":                     {may: only{"attest", "a.b/s"}, now: bundle("a.b/s", nil)},
		"create, for the domain":     {may: only{"attest", "a.b/*"}, now: bundle("a.b/s", nil)},
		"create, for another signer": {may: only{"attest", "a.b/t"}, now: bundle("a.b/s", nil), denied: true},
		"may sign":                   {may: only{"sign", "a.b/s"}, now: bundle("a.b/s", nil), denied: true},
		"without signer":             {now: bundle("", nil)},
		"label":                      {now: bundle("a.b/s", labelled), old: bundle("a.b/s", nil), denied: true},
		"label, may": {may: only{"attest", "a.b/s"}, now: bundle("a.b/s", labelled),
			old: bundle("a.b/s", nil)},
		"label one without signer": {now: bundle("", labelled), old: bundle("", nil)},
		"change nothing":           {now: bundle("a.b/s", labelled), old: bundle("a.b/s", labelled)},
		"finalizers, owners, managers": {old: bundle("a.b/s", nil), now: bundle("a.b/s", func(b *trusted) {
			b.Finalizers, b.OwnerReferences = []string{"a.b/c"}, make([]metav1.OwnerReference, 1)
			b.ManagedFields = make([]metav1.ManagedFieldsEntry, 1)
		})},
		"finalizers and trust": {old: bundle("a.b/s", nil), now: bundle("a.b/s", func(b *trusted) {
			b.Finalizers, b.Spec.TrustBundle = []string{"a.b/c"}, "x"
		}), denied: true},
	} {
		a := &admission.Attributes{Operation: admission.Create, Name: "b", Object: c.now,
			Resource: certificatesv1.SchemeGroupVersion.WithResource("clustertrustbundles"),
			User:     &request.User{Name: "bob"}}
		if c.old != nil {
			a.Operation, a.OldObject = admission.Update, c.old
		}
		err := Attest(c.may).Validator.Validate(t.Context(), a)
		want := `clustertrustbundles.certificates.k8s.io "b" is forbidden: user not permitted to attest for signerName "a.b/s"`
		if (err != nil) != c.denied || err != nil && err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
