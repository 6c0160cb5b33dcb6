package prioritysort

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

func TestLess(t *testing.T) {
	t.Parallel()
	queued := func(priority *int32, at int64) *framework.QueuedPod {
		return &framework.QueuedPod{PodInfo: model.NewPodInfo(&corev1.Pod{Spec: corev1.PodSpec{Priority: priority}}),
			Added: time.Unix(at, 0)}
	}
	for _, c := range []struct {
		name string
		a, b *framework.QueuedPod
		want bool
	}{
		{"higher priority, younger", queued(new(int32(2)), 9), queued(new(int32(1)), 1), true},
		{"lower priority, older", queued(new(int32(-1)), 1), queued(new(int32(0)), 9), false},
		{"none is 0", queued(nil, 1), queued(new(int32(0)), 2), true},
		{"none is more than negative", queued(nil, 2), queued(new(int32(-1)), 1), true},
		{"older", queued(nil, 1), queued(nil, 2), true},
		{"younger", queued(nil, 2), queued(nil, 1), false},
		{"equal: neither comes first", queued(nil, 1), queued(nil, 1), false},
	} {
		if got := (Plugin{}).Less(c.a, c.b); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
