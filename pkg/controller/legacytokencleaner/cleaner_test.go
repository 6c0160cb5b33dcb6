package legacytokencleaner

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// TestReconcile: with a period of ten days, on 2026-02-01.
func TestReconcile(t *testing.T) {
	t.Parallel()
	const get = "GET /api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking"
	const marked, removed = "PATCH /api/v1/namespaces/ns/secrets/s", "DELETE /api/v1/namespaces/ns/secrets/s"
	labels := func(s *corev1.Secret, used, invalid string) {
		s.Labels = map[string]string{lastUsed: used, invalidSince: invalid}
	}
	for name, c := range map[string]struct {
		since  string
		change func(*corev1.Secret, *corev1.ServiceAccount, *corev1.Pod)
		want   string
	}{
		"never used":            {"2026-01-01", nil, marked},
		"noted long enough":     {"2026-01-21", nil, marked},
		"not noted long enough": {"2026-01-22", nil, ""},
		"since nobody knows":    {"some day", nil, ""},
		"used long ago": {"2026-01-01", func(s *corev1.Secret, _ *corev1.ServiceAccount, _ *corev1.Pod) {
			labels(s, "2026-01-21", "")
		}, marked},
		"used": {"2026-01-01", func(s *corev1.Secret, _ *corev1.ServiceAccount, _ *corev1.Pod) {
			labels(s, "2026-01-22", "")
		}, ""},
		"marked": {"2026-01-01", func(s *corev1.Secret, _ *corev1.ServiceAccount, _ *corev1.Pod) {
			labels(s, "", "2026-01-22")
		}, ""},
		"marked long ago": {"2026-01-01", func(s *corev1.Secret, _ *corev1.ServiceAccount, _ *corev1.Pod) {
			labels(s, "", "2026-01-21")
		}, removed},
		"marked, and yet used": {"2026-01-01", func(s *corev1.Secret, _ *corev1.ServiceAccount, _ *corev1.Pod) {
			labels(s, "2026-01-30", "2026-01-21")
		}, ""},
		"marked unreadably": {"2026-01-01", func(s *corev1.Secret, _ *corev1.ServiceAccount, _ *corev1.Pod) {
			labels(s, "", "x")
		}, marked},
		"young": {"2026-01-01", func(s *corev1.Secret, _ *corev1.ServiceAccount, _ *corev1.Pod) {
			s.CreationTimestamp = metav1.Date(2026, 1, 22, 13, 0, 0, 0, time.UTC)
		}, ""},
		"made by a user": {"2026-01-01", func(_ *corev1.Secret, a *corev1.ServiceAccount, _ *corev1.Pod) {
			a.Secrets = nil
		}, ""},
		"of an earlier account": {"2026-01-01", func(_ *corev1.Secret, a *corev1.ServiceAccount, _ *corev1.Pod) {
			a.UID = "new"
		}, ""},
		"mounted": {"2026-01-01", func(_ *corev1.Secret, _ *corev1.ServiceAccount, p *corev1.Pod) {
			p.Namespace = "ns"
		}, ""},
		"mounted, and long ago": {"2026-01-01", func(s *corev1.Secret, _ *corev1.ServiceAccount, p *corev1.Pod) {
			labels(s, "", "2026-01-21")
			p.Namespace = "ns"
		}, ""},
		"mounted somewhere else": {"2026-01-01", func(_ *corev1.Secret, _ *corev1.ServiceAccount, p *corev1.Pod) {
			p.Namespace = "other"
		}, marked},
	} {
		fake := &controllertest.Fake{Answer: func(call controllertest.Call) (runtime.Object, error) {
			if call.Name() == get {
				return &corev1.ConfigMap{Data: map[string]string{"since": c.since}}, nil
			}
			if call.Method == "DELETE" {
				o, ok := call.Object.(*metav1.DeleteOptions)
				if !ok || *o.Preconditions.UID != "u" || *o.Preconditions.ResourceVersion != "7" {
					t.Errorf("%s: %+v", name, call.Object)
				}
			} else if want := `{"metadata":{"labels":{"kubernetes.io/legacy-token-invalid-since":"2026-02-01"},"resourceVersion":"7","uid":"u"}}`; string(call.Body) != want {
				t.Errorf("%s: %s", name, call.Body)
			}
			return &corev1.Secret{}, nil
		}}
		ctl, err := New(fake.Deps(t, time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)),
			Config{CleanUpPeriod: 10 * 24 * time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "u", ResourceVersion: "7",
			CreationTimestamp: metav1.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC),
			Annotations: map[string]string{corev1.ServiceAccountNameKey: "sa",
				corev1.ServiceAccountUIDKey: "sa-uid"}},
			Type: corev1.SecretTypeServiceAccountToken}
		a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa", UID: "sa-uid"},
			Secrets: []corev1.ObjectReference{{Name: "s"}}}
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "p"},
			Spec: corev1.PodSpec{Volumes: []corev1.Volume{
				{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}}}}}
		if c.change != nil {
			c.change(s, a, p)
		}
		controllertest.Put(t, ctl.secrets, s)
		controllertest.Put(t, ctl.accounts, a)
		controllertest.Put(t, ctl.pods, p)
		res, err := ctl.Reconcile(t.Context(), controller.Key{Namespace: "kube-system", Name: tracking})
		want := []string{get}
		if c.want != "" {
			want = append(want, c.want)
		}
		if err != nil || res.RequeueAfter != 24*time.Hour || !slices.Equal(fake.Names(), want) {
			t.Errorf("%s: %+v, %v, %v", name, res, err, fake.Names())
		}
	}
}
