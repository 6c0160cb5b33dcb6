package serviceaccount

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

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

func TestReconcile(t *testing.T) {
	t.Parallel()
	accounts := schema.GroupResource{Resource: "serviceaccounts"}
	ending := apierrors.NewForbidden(accounts, name, errors.New("namespace is being terminated"))
	ending.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	now := metav1.Now()
	namespace := func(phase corev1.NamespacePhase, deleted *metav1.Time) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", DeletionTimestamp: deleted},
			Status: corev1.NamespaceStatus{Phase: phase}}
	}
	active := namespace(corev1.NamespaceActive, nil)
	for _, c := range []struct {
		name     string
		ns       *corev1.Namespace
		accounts []string // namespace, name, ...
		answer   error
		creates  bool
		fails    bool
	}{
		{name: "missing", ns: active, creates: true},
		{name: "there", ns: active, accounts: []string{"ns", "default"}},
		{name: "others are there", ns: active, accounts: []string{"ns", "builder", "other", "default"}, creates: true},
		{name: "namespace gone"},
		{name: "namespace ends", ns: namespace(corev1.NamespaceTerminating, nil)},
		{name: "namespace is deleted", ns: namespace(corev1.NamespaceActive, &now)},
		{name: "namespace began to end", ns: active, answer: ending, creates: true},
		{name: "there already", ns: active, answer: apierrors.NewAlreadyExists(accounts, name), creates: true},
		{name: "may not", ns: active, answer: apierrors.NewForbidden(accounts, name, errors.New("no")), creates: true,
			fails: true},
		{name: "server is down", ns: active, answer: apierrors.NewServiceUnavailable("down"), creates: true,
			fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
				return call.Object, c.answer
			}}
			ctl, err := New(fake.Deps(t, time.Unix(0, 0)))
			if err != nil {
				t.Fatal(err)
			}
			if c.ns != nil {
				controllertest.Put(t, ctl.namespaces, c.ns)
			}
			for i := 0; i < len(c.accounts); i += 2 {
				controllertest.Put(t, ctl.accounts,
					&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.accounts[i],
						Name: c.accounts[i+1]}})
			}
			if _, err := ctl.Reconcile(t.Context(), controller.Key{Name: "ns"}); (err != nil) != c.fails {
				t.Errorf("error %v", err)
			}
			var want []string
			if c.creates {
				want = []string{"POST /api/v1/namespaces/ns/serviceaccounts"}
			}
			if got := fake.Names(); !slices.Equal(got, want) {
				t.Fatalf("calls %v, want %v", got, want)
			}
			if c.creates {
				if sa := fake.Calls()[0].Object.(*corev1.ServiceAccount); sa.Name != "default" || sa.Namespace != "ns" {
					t.Errorf("created %+v", sa)
				}
			}
		})
	}
}
