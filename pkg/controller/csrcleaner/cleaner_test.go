package csrcleaner

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	certificatesclient "bonsai/pkg/apiclient/certificates"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// until is a certificate that holds until the given time.
func until(t *testing.T, at time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{NotAfter: at}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		created   time.Duration // ago
		condition certificatesv1.RequestConditionType
		changed   time.Duration // ago
		cert      []byte
		deletes   bool
		again     time.Duration
	}{
		"pending":          {created: 23 * time.Hour, again: time.Hour},
		"pending for long": {created: 24 * time.Hour, deletes: true},
		"denied": {created: 48 * time.Hour, condition: certificatesv1.CertificateDenied,
			changed: 20 * time.Minute, again: 40 * time.Minute},
		"denied long ago": {condition: certificatesv1.CertificateDenied, changed: time.Hour, deletes: true},
		"failed long ago": {condition: certificatesv1.CertificateFailed, changed: time.Hour, deletes: true},
		"approved, not issued": {created: 48 * time.Hour, condition: certificatesv1.CertificateApproved,
			changed: 30 * time.Hour},
		"issued": {condition: certificatesv1.CertificateApproved, changed: time.Minute,
			cert: until(t, now.Add(9*time.Hour)), again: 59 * time.Minute},
		"issued long ago": {condition: certificatesv1.CertificateApproved, changed: time.Hour,
			cert: until(t, now.Add(9*time.Hour)), deletes: true},
		"issued for short": {condition: certificatesv1.CertificateApproved, changed: time.Minute,
			cert: until(t, now.Add(10*time.Minute)), again: 10 * time.Minute},
		"issued and over": {condition: certificatesv1.CertificateApproved, changed: time.Minute,
			cert: until(t, now), deletes: true},
	} {
		fake := &controllertest.Fake{Answer: func(controllertest.Call) (runtime.Object, error) {
			return &metav1.Status{}, nil
		}}
		d := fake.Deps(t, now)
		ctl, err := New(d)
		if err != nil {
			t.Fatal(err)
		}
		r := &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "u", CreationTimestamp: metav1.NewTime(now.Add(-c.created))}}
		r.Status.Certificate = c.cert
		if c.condition != "" {
			r.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
				{Type: c.condition, LastUpdateTime: metav1.NewTime(now.Add(-c.changed))}}
		}
		controllertest.Put(t, controller.InformerFor(d.Informers, certificatesclient.CertificateSigningRequests), r)
		res, err := ctl.Reconcile(t.Context(), controller.Key{Name: "r"})
		var want []string
		if c.deletes {
			want = []string{"DELETE /apis/certificates.k8s.io/v1/certificatesigningrequests/r"}
		}
		if err != nil || res.RequeueAfter != c.again || !slices.Equal(fake.Names(), want) {
			t.Errorf("%s: %+v, %v, %v", name, res, err, fake.Names())
		}
		if c.deletes && *fake.Calls()[0].Object.(*metav1.DeleteOptions).Preconditions.UID != "u" {
			t.Errorf("%s: one that was made anew goes, too", name)
		}
	}
}
