package podcertificaterequestcleaner

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	certificatesclient "bonsai/pkg/apiclient/certificates"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

func TestReconcile(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		age     time.Duration
		deletes bool
		again   time.Duration
	}{
		"new":  {age: time.Minute, again: 14 * time.Minute},
		"over": {age: 15 * time.Minute, deletes: true},
	} {
		fake := &controllertest.Fake{Answer: func(controllertest.Call) (runtime.Object, error) {
			return &metav1.Status{}, nil
		}}
		d := fake.Deps(t, now)
		ctl, err := New(d)
		if err != nil {
			t.Fatal(err)
		}
		controllertest.Put(t, controller.InformerFor(d.Informers, certificatesclient.PodCertificateRequests),
			&request{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r", UID: "u",
				CreationTimestamp: metav1.NewTime(now.Add(-c.age))}})
		res, err := ctl.Reconcile(t.Context(), controller.Key{Namespace: "ns", Name: "r"})
		var want []string
		if c.deletes {
			want = []string{"DELETE /apis/certificates.k8s.io/v1/namespaces/ns/podcertificaterequests/r"}
		}
		if err != nil || res.RequeueAfter != c.again || !slices.Equal(fake.Names(), want) {
			t.Errorf("%s: %+v, %v, %v", name, res, err, fake.Names())
		}
		if c.deletes && *fake.Calls()[0].Object.(*metav1.DeleteOptions).Preconditions.UID != "u" {
			t.Errorf("%s: one that was made anew goes, too", name)
		}
	}
}
