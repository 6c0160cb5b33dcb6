package noderestriction

import (
	"context"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/authz"
	"bonsai/pkg/apiserver/request"
)

// withCertificate is a pod with a certificate of the signer a.b/s.
func withCertificate(node string, change func(*corev1.Pod)) *corev1.Pod {
	return pod(node, false, func(p *corev1.Pod) {
		p.Spec.ServiceAccountName = "sa"
		p.Spec.Volumes = []corev1.Volume{{Name: "c", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{PodCertificate: &corev1.PodCertificateProjection{SignerName: "a.b/s"}}}}}}}
		if change != nil {
			change(p)
		}
	})
}

// signerOf lets nodes ask a signer for certificates of the account sa.
type signerOf string

func (s signerOf) Authorize(_ context.Context, a authz.Attributes) (authz.Decision, string, error) {
	if a.IsResource && a.Verb == "request-serviceaccounts-podcertificate-signer" &&
		a.APIGroup == "certificates.k8s.io" && a.Resource == string(s) && a.Namespace == "ns" && a.Name == "sa" {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// TestCertificates: the answers are those of a kube-apiserver v1.37.2.
func TestCertificates(t *testing.T) {
	t.Parallel()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "sa", UID: "sa-uid"}}
	plug := New(Config{Nodes: objects{"n1": node("n1", nil), "n3": node("n3", nil)},
		Pods: objects{"mine": withCertificate("n1", nil), "other": withCertificate("n3", nil),
			"mirror": withCertificate("n1", func(p *corev1.Pod) {
				p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
			}),
			"mirror elsewhere": withCertificate("n3", func(p *corev1.Pod) {
				p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
			}),
			"orphan": withCertificate("n1", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "gone" })},
		ServiceAccounts: objects{"sa": account}, Authorizer: signerOf("allowed.io:s")})
	const forbidden = `podcertificaterequests.certificates.k8s.io "r" is forbidden: `
	type spec = certificatesv1.PodCertificateRequestSpec
	for name, c := range map[string]struct {
		user   string
		change func(*spec)
		err    string
	}{
		"good":              {change: func(*spec) {}},
		"for another node":  {change: func(s *spec) { s.NodeName, s.PodName = "n2", "" }, err: forbidden + `PodCertificateRequest.Spec.NodeName="n2", which is not the requesting node "n1"`},
		"of a missing node": {user: "n2", change: func(s *spec) { s.NodeName, s.PodName = "n2", "none" }, err: `while retrieving node "n2" named in the PodCertificateRequest: node "n2" not found`},
		"another life of the node": {change: func(s *spec) { s.NodeUID, s.ServiceAccountName = "x", "none" },
			err: `PodCertificateRequest for pod "ns/mine" names node UID "x", inconsistent with the running node ("node-uid")`},
		"a missing pod": {change: func(s *spec) { s.PodName, s.ServiceAccountName = "none", "none" },
			err: `while retrieving pod "ns/none" named in the PodCertificateRequest: pod "none" not found`},
		"another life of the pod": {change: func(s *spec) { s.PodName, s.PodUID = "other", "x" },
			err: `PodCertificateRequest for pod "ns/other" contains pod UID ("x") which differs from running pod "p-uid"`},
		"another's pod": {change: func(s *spec) { s.PodName, s.ServiceAccountName = "other", "none" },
			err: forbidden + `pod "ns/other" is not running on node "n1" named in the PodCertificateRequest`},
		"a mirror pod": {change: func(s *spec) { s.PodName, s.ServiceAccountName = "mirror", "none" },
			err: forbidden + `pod "ns/mirror" is a mirror pod`},
		"another's mirror pod": {change: func(s *spec) { s.PodName = "mirror elsewhere" },
			err: forbidden + `pod "ns/mirror elsewhere" is not running on node "n1" named in the PodCertificateRequest`},
		"another account": {change: func(s *spec) { s.ServiceAccountName = "admin" },
			err: forbidden + `PodCertificateRequest for pod "ns/mine" contains serviceAccountName ("admin") that differs from running pod ("sa")`},
		"a missing account": {change: func(s *spec) { s.PodName, s.ServiceAccountName = "orphan", "gone" },
			err: `while retrieving service account "ns/gone" named in the PodCertificateRequest: serviceaccount "gone" not found`},
		"another life of the account": {change: func(s *spec) { s.ServiceAccountUID, s.SignerName = "x", "q.q/q" },
			err: `PodCertificateRequest for pod "ns/mine" names service account UID "x", which differs from the running service account ("sa-uid")`},
		"another signer, allowed": {change: func(s *spec) { s.SignerName = "allowed.io/s" }},
		"another signer": {change: func(s *spec) { s.SignerName = "q.q/q" },
			err: forbidden + `pod "ns/mine" does not mount a podCertificate projected volume for signer "q.q/q"`},
	} {
		r := &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Name: "r", Namespace: "ns"},
			Spec: spec{SignerName: "a.b/s", PodName: "mine", PodUID: "p-uid", ServiceAccountName: "sa",
				ServiceAccountUID: "sa-uid", NodeName: "n1", NodeUID: "node-uid"}}
		c.change(&r.Spec)
		if c.user == "" {
			c.user = "n1"
		}
		a := &admission.Attributes{Operation: admission.Create, Namespace: "ns", Object: r,
			Resource: certificatesv1.SchemeGroupVersion.WithResource("podcertificaterequests"),
			User:     &request.User{Name: request.NodeUserPrefix + c.user, Groups: []string{request.GroupNodes}}}
		err := plug.Mutator.Admit(t.Context(), a)
		if got := errorText(err); got != c.err {
			t.Errorf("%s: %s, want %s", name, got, c.err)
		}
		a.Operation, a.OldObject = admission.Update, r
		if got := errorText(plug.Mutator.Admit(t.Context(), a)); got != forbidden+"unexpected operation UPDATE" {
			t.Errorf("%s, an update: %s", name, got)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
