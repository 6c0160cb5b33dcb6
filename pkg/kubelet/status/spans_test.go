package status

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"bonsai/pkg/kubelet/kubelettest"
	"bonsai/pkg/trace/tracetest"
)

const uid = "f3a1c2d4-0b5e-4c6f-8a7b-9c0d1e2f3a4b"

// TestRoot: the root of a pod's trace is recorded once, when the API server knows that the pod is Ready, or has ended
// before it was; and not for a pod that was ready before this kubelet.
func TestRoot(t *testing.T) {
	t.Parallel()
	status := func(phase corev1.PodPhase, ready corev1.ConditionStatus) corev1.PodStatus {
		return corev1.PodStatus{Phase: phase, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}}
	}
	for name, c := range map[string]struct {
		before corev1.ConditionStatus
		then   []corev1.PodStatus
		roots  int
		phase  string
	}{
		"ready twice": {"False", []corev1.PodStatus{status("Running", "False"), status("Running", "True"),
			status("Running", "False"), status("Running", "True"), status("Succeeded", "False")}, 1, "Running"},
		"never ready":  {"False", []corev1.PodStatus{status("Running", "False"), status("Succeeded", "False")}, 1, "Succeeded"},
		"ready before": {"True", []corev1.PodStatus{status("Running", "False"), status("Running", "True")}, 0, ""},
		"not yet":      {"False", []corev1.PodStatus{status("Running", "False")}, 0, ""},
	} {
		o := object()
		o.UID, o.Status.Conditions[1].Status = uid, c.before
		client := fake.NewClientset(o)
		tracer, spans := tracetest.New("kubelet")
		w := New(kubelettest.Client{Interface: client}, func(time.Duration) {}, tracer, slog.New(slog.DiscardHandler))
		w.Observe(uid, o)
		for _, st := range c.then {
			w.Set(uid, st)
			if err := w.write(t.Context(), uid); err != nil {
				t.Fatal(err)
			}
		}
		w.Delete(uid)
		if err := w.write(t.Context(), uid); err != nil {
			t.Fatal(err)
		}
		w.Close()
		roots := spans.Named("pod")
		if len(roots) != c.roots || c.roots > 0 && tracetest.Attribute(roots[0], "k8s.pod.status.phase") != c.phase {
			t.Errorf("%s: %q", name, spans.Names())
		}
		if n := len(spans.Named("kubelet.status")); n != len(c.then) || len(spans.Named("kubelet.delete")) != 1 {
			t.Errorf("%s: %q", name, spans.Names())
		}
	}
}

// TestRootTime: the root ends when the kubelet knew that the pod is Ready, although an earlier status is written with
// that one; and a write that fails first loses no root.
func TestRootTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := object()
		o.UID = uid
		o.CreationTimestamp = metav1.Now()
		tracer, spans := tracetest.New("kubelet")
		failures := 1
		w := New(nil, func(time.Duration) {}, tracer, slog.New(slog.DiscardHandler))
		defer w.Close()
		w.client = server{patch: func() (*corev1.Pod, error) {
			if failures--; failures >= 0 {
				return nil, errors.New("conflict")
			}
			p := o.DeepCopy()
			p.ResourceVersion, p.Status = "6", merged(w.pods[uid].want, &p.Status)
			return p, nil
		}}
		w.Observe(uid, o)
		w.Set(uid, corev1.PodStatus{Phase: corev1.PodPending})
		time.Sleep(300 * time.Millisecond) // the bubble's clock moves; nobody waits
		w.Set(uid, corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue}}})
		time.Sleep(100 * time.Millisecond)
		if err := w.write(t.Context(), uid); err == nil {
			t.Fatal("the first write does not fail")
		}
		if err := w.write(t.Context(), uid); err != nil {
			t.Fatal(err)
		}
		roots := spans.Named("pod")
		if len(roots) != 1 {
			t.Fatalf("%q", spans.Names())
		}
		if took := roots[0].EndTime().Sub(o.CreationTimestamp.Time); took != 300*time.Millisecond {
			t.Errorf("the root ends %s after the creation, want when the pod was Ready: 300ms", took)
		}
	})
}
