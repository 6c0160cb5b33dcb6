package signing

import (
	"context"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// signs allows to sign for one name of signers.
type signs string

func (s signs) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	if a.IsResource && a.APIGroup == "certificates.k8s.io" && a.Resource == "signers" && a.Verb == "sign" &&
		a.Name == string(s) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// TestCheckUpdate: the answers are those of a kube-apiserver v1.37.2.
func TestCheckUpdate(t *testing.T) {
	t.Parallel()
	old := &certificatesv1.PodCertificateRequest{Spec: certificatesv1.PodCertificateRequestSpec{SignerName: "a.b/s"}}
	denied := old.DeepCopy()
	denied.Status.Conditions = []metav1.Condition{{Type: "Denied"}}
	labelled := old.DeepCopy()
	labelled.Labels = map[string]string{"a": "b"}
	for name, c := range map[string]struct {
		may         signs
		subresource string
		now         *certificatesv1.PodCertificateRequest
		err         string
	}{
		"may sign": {"a.b/s", "status", denied, ""}, "may sign for the domain": {"a.b/*", "status", denied, ""},
		"may sign for another": {"a.b/t", "status", denied,
			`spec.signerName: Forbidden: User "bob" is not permitted to "sign" for signer "a.b/s"`},
		"no change":         {"", "status", labelled, ""},
		"the object itself": {"", "", denied, ""},
	} {
		ctx := request.WithUser(t.Context(), &request.User{Name: "bob"})
		errs := New(c.may).CheckUpdate(ctx, c.subresource, c.now, old)
		if (len(errs) > 0) != (c.err != "") || len(errs) > 0 && errs[0].Error() != c.err {
			t.Errorf("%s: %v", name, errs)
		}
	}
}
