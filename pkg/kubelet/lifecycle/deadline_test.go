package lifecycle

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDeadline(t *testing.T) {
	t.Parallel()
	begun, five := time.Unix(1000, 0), int64(5)
	for name, c := range map[string]struct {
		seconds *int64
		start   time.Time
		phase   corev1.PodPhase
		want    time.Time
	}{
		"none":        {nil, begun, corev1.PodRunning, time.Time{}},
		"running":     {&five, begun, corev1.PodRunning, begun.Add(5 * time.Second)},
		"pending":     {&five, begun, corev1.PodPending, begun.Add(5 * time.Second)},
		"not started": {&five, time.Time{}, corev1.PodPending, time.Time{}},
		"ended":       {&five, begun, corev1.PodSucceeded, time.Time{}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{ActiveDeadlineSeconds: c.seconds},
			Status: corev1.PodStatus{Phase: c.phase}}
		if !c.start.IsZero() {
			pod.Status.StartTime = &metav1.Time{Time: c.start}
		}
		if got := Deadline(pod); !got.Equal(c.want) {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
	zero, later := time.Time{}, begun.Add(1)
	for _, c := range [][3]time.Time{{zero, zero, zero}, {begun, zero, begun}, {zero, begun, begun},
		{later, begun, begun}, {begun, later, begun}} {
		if got := Earlier(c[0], c[1]); got != c[2] {
			t.Errorf("the earlier of %v and %v is %v", c[0], c[1], got)
		}
	}
}
