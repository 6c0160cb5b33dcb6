package csrapproving

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

func asked(t *testing.T, user, name string,
	change func(*certificatesv1.CertificateSigningRequest)) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: []string{"system:nodes"}}}, key)
	if err != nil {
		t.Fatal(err)
	}
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "r"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Username: user, Groups: []string{"g"},
			Extra:   map[string]certificatesv1.ExtraValue{"k": {"v"}},
			Usages:  []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		}}
	if change != nil {
		change(r)
	}
	return r
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	const approve = "PUT /apis/certificates.k8s.io/v1/certificatesigningrequests/r/approval"
	const review = "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"
	set := func(c certificatesv1.RequestConditionType) func(*certificatesv1.CertificateSigningRequest) {
		return func(r *certificatesv1.CertificateSigningRequest) {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: c}}
		}
	}
	for name, c := range map[string]struct {
		request *certificatesv1.CertificateSigningRequest
		may     string
		calls   []string
		message string
		again   bool
	}{
		"a node's first": {asked(t, "bootstrap", "system:node:n", nil), "nodeclient",
			[]string{review, approve}, "Auto approving kubelet client certificate after SubjectAccessReview.", false},
		"a node's next": {asked(t, "system:node:n", "system:node:n", nil), "selfnodeclient",
			[]string{review, approve}, "Auto approving self kubelet client certificate after SubjectAccessReview.",
			false},
		"a node's next as first": {asked(t, "system:node:n", "system:node:n", nil), "nodeclient",
			[]string{review, review, approve}, "Auto approving kubelet client certificate after SubjectAccessReview.",
			false},
		"for another node": {asked(t, "system:node:m", "system:node:n", nil), "selfnodeclient",
			[]string{review}, "", true},
		"who may not": {asked(t, "bob", "system:node:n", nil), "", []string{review}, "", true},
		"the name of a node that exists": {asked(t, "system:bootstrap:abcdef", "system:node:taken", nil), "nodeclient",
			nil, "", true},
		"that node itself": {asked(t, "system:node:taken", "system:node:taken", nil), "selfnodeclient",
			[]string{review, approve}, "Auto approving self kubelet client certificate after SubjectAccessReview.",
			false},
		"no name": {asked(t, "system:bootstrap:abcdef", "system:node:", nil), "nodeclient", nil,
			"", false},
		"a name that no node can have": {asked(t, "system:bootstrap:abcdef", "system:node:A_b", nil), "nodeclient",
			nil, "", false},
		"a Service's name": {asked(t, "system:bootstrap:abcdef", "system:node:hook.prod.svc", nil),
			"nodeclient", nil, "", false},
		"a Service's whole name": {
			asked(t, "system:bootstrap:abcdef", "system:node:hook.prod.svc.cluster.local", nil), "nodeclient", nil, "",
			false},
		"for no node": {asked(t, "bob", "bob", nil), "nodeclient", nil, "", false},
		"another signer": {asked(t, "bob", "system:node:n", func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName
		}), "nodeclient", nil, "", false},
		"a server": {asked(t, "bob", "system:node:n", func(r *certificatesv1.CertificateSigningRequest) {
			r.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature,
				certificatesv1.UsageServerAuth}
		}), "nodeclient", nil, "", false},
		"approved": {asked(t, "bob", "system:node:n", set(certificatesv1.CertificateApproved)), "nodeclient", nil, "",
			false},
		"denied": {asked(t, "bob", "system:node:n", set(certificatesv1.CertificateDenied)), "nodeclient", nil, "",
			false},
	} {
		fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
			if r, ok := call.Object.(*authorizationv1.SubjectAccessReview); ok {
				a := r.Spec.ResourceAttributes
				r.Status.Allowed = a.Subresource == c.may && a.Verb == "create" && a.Group == "certificates.k8s.io" &&
					a.Resource == "certificatesigningrequests" &&
					r.Spec.User == c.request.Spec.Username && r.Spec.Groups[0] == "g" && r.Spec.Extra["k"][0] == "v"
			}
			return call.Object, nil
		}}
		ctl, err := New(fake.Deps(t, time.Unix(1000, 0)))
		if err != nil {
			t.Fatal(err)
		}
		controllertest.Put(t, ctl.requests, c.request)
		controllertest.Put(t, ctl.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "taken"}})
		res, err := ctl.Reconcile(t.Context(), controller.Key{Name: "r"})
		if err != nil || res.Backoff != c.again || !slices.Equal(fake.Names(), c.calls) {
			t.Errorf("%s: %+v, %v, %v", name, res, err, fake.Names())
		}
		if c.message == "" {
			continue
		}
		s := fake.Calls()[len(fake.Calls())-1].Object.(*certificatesv1.CertificateSigningRequest).Status.Conditions[0]
		if s.Type != certificatesv1.CertificateApproved || s.Status != "True" || s.Reason != "AutoApproved" ||
			s.Message != c.message || s.LastUpdateTime.Unix() != 1000 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
