package tokencleaner

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiclient"
	"bonsai/pkg/apiclient/core"
	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

func TestReconcile(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	secrets := schema.GroupResource{Resource: "secrets"}
	for _, c := range []struct {
		name, expires string // "-" for no secret
		answer        error
		deletes       bool
		again         time.Duration
		fails         bool
	}{
		{name: "no date: never", expires: ""},
		{name: "expired", expires: "2026-01-02T03:04:04Z", deletes: true},
		{name: "expires now", expires: "2026-01-02T03:04:05Z", deletes: true},
		{name: "good for a while", expires: "2026-01-02T04:04:05Z", again: time.Hour},
		{name: "in another time zone", expires: "2026-01-02T05:04:05+01:00", again: time.Hour},
		{name: "unreadable date is over", expires: "tomorrow", deletes: true},
		{name: "gone", expires: "-"},
		{name: "gone meanwhile", expires: "tomorrow", answer: apierrors.NewNotFound(secrets, "t"), deletes: true},
		{name: "exchanged meanwhile", expires: "tomorrow",
			answer: apierrors.NewConflict(secrets, "t", errors.New("uid")), deletes: true},
		{name: "may not", expires: "tomorrow", answer: apierrors.NewForbidden(secrets, "t", errors.New("no")),
			deletes: true, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fake := &controllertest.Fake{Answer: func(controllertest.Call) (runtime.Object, error) {
				return &metav1.Status{}, c.answer
			}}
			d := fake.Deps(t, now)
			ctl, err := New(d)
			if err != nil {
				t.Fatal(err)
			}
			if c.expires != "-" {
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "t", UID: "u"},
					Type: secretType, Data: map[string][]byte{}}
				if c.expires != "" {
					s.Data["expiration"] = []byte(c.expires)
				}
				controllertest.Put(t, controller.FilteredInformerFor(d.Informers, core.Secrets,
					apiclient.Selection{Namespace: namespace, Fields: "type=" + secretType}), s)
			}
			res, err := ctl.Reconcile(t.Context(), controller.Key{Namespace: "kube-system", Name: "t"})
			if (err != nil) != c.fails || res.RequeueAfter != c.again {
				t.Errorf("%+v, %v, want again after %v", res, err, c.again)
			}
			var want []string
			if c.deletes {
				want = []string{"DELETE /api/v1/namespaces/kube-system/secrets/t"}
			}
			if got := fake.Names(); !slices.Equal(got, want) {
				t.Fatalf("calls %v, want %v", got, want)
			}
			if c.deletes {
				o := fake.Calls()[0].Object.(*metav1.DeleteOptions)
				if o.Preconditions == nil || *o.Preconditions.UID != "u" {
					t.Errorf("deleted with %+v: a token that was recreated must stay", o)
				}
			}
		})
	}
}
