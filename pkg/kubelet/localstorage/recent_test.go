package localstorage

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/runtime"
)

// TestRecent: who asks often is shown what was measured, which is measured again in time, and later the longer it took.
func TestRecent(t *testing.T) {
	t.Parallel()
	now, took, measured := time.Unix(1000, 0), time.Duration(0), int64(0)
	var broken error
	r := NewRecent(&Watcher{}, func() time.Time { return now })
	r.each = func(_ context.Context, pods []*corev1.Pod, f func(*corev1.Pod, Usage)) error {
		measured++
		now = now.Add(took)
		for _, p := range pods {
			f(p, Usage{Logs: map[string]runtime.DiskUse{"c": {Bytes: measured}}})
		}
		return broken
	}
	pods := []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{UID: "u"}}}
	want := func(what string, bytes int64, failed bool) {
		t.Helper()
		u, err := r.Usage(t.Context(), pods)
		if u["u"].Logs["c"].Bytes != bytes || (err != nil) != failed {
			t.Errorf("%s: %+v %v, want the measurement %d", what, u, err, bytes)
		}
	}
	want("at first", 1, false)
	now = now.Add(recentFor - time.Second)
	want("soon after", 1, false)
	now, took = now.Add(time.Second), 10*time.Second
	want("later", 2, false)
	now = now.Add(rest*took - time.Second)
	want("soon after one that took long", 2, false)
	now, broken = now.Add(time.Second), errors.New("no runtime")
	want("when it cannot be measured", 2, true)
	now, broken = now.Add(rest*took-time.Second), nil
	want("soon after an error, for which the disk was busy", 2, false)
	now = now.Add(time.Second)
	want("when it can be measured again", 4, false)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.turn <- struct{}{}
	if _, err := r.Usage(ctx, pods); err == nil {
		t.Error("a client that left waits for its turn")
	}
}
