package denyserviceexternalips

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/admission"
)

func service(ips ...string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{ExternalIPs: ips}}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old, now *corev1.Service
		sub      string
		denied   bool
	}{
		"created without":         {nil, service(), "", false},
		"created with one":        {nil, service("192.0.2.1"), "", true},
		"first one added":         {service(), service("192.0.2.1"), "", true},
		"one more added":          {service("192.0.2.1"), service("192.0.2.1", "192.0.2.2"), "", true},
		"one exchanged":           {service("192.0.2.1"), service("192.0.2.2"), "", true},
		"all kept, another order": {service("192.0.2.1", "192.0.2.2"), service("192.0.2.2", "192.0.2.1"), "", false},
		"one dropped":             {service("192.0.2.1", "192.0.2.2"), service("192.0.2.2"), "", false},
		"all dropped":             {service("192.0.2.1"), service(), "", false},
		"its status written":      {service(), service("192.0.2.1"), "status", false},
	} {
		a := &admission.Attributes{Operation: admission.Create,
			Resource: corev1.SchemeGroupVersion.WithResource("services"), Subresource: c.sub, Name: "s", Object: c.now}
		if c.old != nil {
			a.Operation, a.OldObject = admission.Update, c.old
		}
		err := New().Validator.Validate(t.Context(), a)
		if apierrors.IsForbidden(err) != c.denied || !c.denied && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if want := `services "s" is forbidden: Use of external IPs is denied by admission control`; c.denied &&
			err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
