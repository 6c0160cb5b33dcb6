package limitranger

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/apiserver/admission"
)

// TestClaims: the messages are what kube-apiserver v1.36 answers; a claim's limits do not matter.
func TestClaims(t *testing.T) {
	t.Parallel()
	l := limitRange(corev1.LimitRangeItem{Type: corev1.LimitTypePersistentVolumeClaim, Min: list("storage", "1Gi"),
		Max: list("storage", "3Gi")},
		corev1.LimitRangeItem{Type: corev1.LimitTypePod, Max: list("storage", "1")})
	for _, c := range []struct {
		op           admission.Operation
		sub, request string
		want         string
	}{
		{admission.Create, "", "2Gi", ""},
		{admission.Create, "", "500Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"},
		{admission.Create, "", "5Gi", "maximum storage usage per PersistentVolumeClaim is 3Gi, but request is 5Gi"},
		{admission.Update, "", "9Gi", "maximum storage usage per PersistentVolumeClaim is 3Gi, but request is 9Gi"},
		{admission.Update, "status", "9Gi", ""},
	} {
		claim := &corev1.PersistentVolumeClaim{}
		claim.Spec.Resources.Requests, claim.Spec.Resources.Limits = list("storage", c.request), list("storage", "9Gi")
		a := &admission.Attributes{Operation: c.op,
			Resource: corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), Subresource: c.sub,
			Namespace: "ns", Name: "c", Object: claim}
		p := New(ranges{l})
		if err := p.Mutator.Admit(t.Context(), a); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if err := p.Validator.Validate(t.Context(), a); c.want == "" && err != nil ||
			c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
