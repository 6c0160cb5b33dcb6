package status

import (
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/trace"
)

// did records a write of a pod's object.
func (w *Writer) did(object *corev1.Pod, step string, begun, end time.Time) {
	if w.tracer.Records(object.UID) {
		w.tracer.Step(trace.Pod(object), trace.Step{Name: step, Start: begun, End: end})
	}
}

// didReach records the root of a pod's trace: the pod has become what it was made for, at a time. It is said once, when
// the API server knows it, too. A kubelet that starts again while a pod is not ready does not know that it was before,
// and says it again, under the same id.
func (w *Writer) didReach(object *corev1.Pod, want *corev1.PodStatus, at time.Time) {
	if w.tracer.Records(object.UID) {
		w.tracer.Reached(trace.Pod(object), at, semconv.K8SPodStatusPhaseKey.String(string(want.Phase)))
	}
}

// reached reports whether a pod is Ready, or has ended: a short one may never be seen ready.
func reached(st *corev1.PodStatus) bool {
	if st.Phase == corev1.PodSucceeded || st.Phase == corev1.PodFailed {
		return true
	}
	for i := range st.Conditions {
		if c := &st.Conditions[i]; c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
