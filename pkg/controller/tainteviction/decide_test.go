package tainteviction

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDecide follows the documentation of taint based evictions.
func TestDecide(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	added := metav1.NewTime(now.Add(-10 * time.Second))
	taint := func(key string) corev1.Taint {
		return corev1.Taint{Key: key, Value: "v", Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}
	}
	untimed := func(t corev1.Taint) corev1.Taint { t.TimeAdded = nil; return t }
	exists := func(key string, seconds *int64) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, TolerationSeconds: seconds}
	}
	for _, c := range []struct {
		name        string
		taints      []corev1.Taint
		tolerations []corev1.Toleration
		wait        time.Duration
		evict       bool
	}{
		{"no taint", nil, nil, 0, false},
		{"not tolerated", []corev1.Taint{taint("a")}, nil, 0, true},
		{"for ever", []corev1.Taint{taint("a")}, []corev1.Toleration{exists("a", nil)}, 0, false},
		{"everything", []corev1.Taint{taint("a")}, []corev1.Toleration{exists("", nil)}, 0, false},
		{"for a while", []corev1.Taint{taint("a")}, []corev1.Toleration{exists("a", new(int64(300)))},
			290 * time.Second, false},
		{"over", []corev1.Taint{taint("a")}, []corev1.Toleration{exists("a", new(int64(10)))}, 0, true},
		{"at once", []corev1.Taint{taint("a")}, []corev1.Toleration{exists("a", new(int64(0)))}, 0, true},
		{"the shortest counts", []corev1.Taint{taint("a"), taint("b")},
			[]corev1.Toleration{exists("a", new(int64(60))), exists("b", new(int64(30)))}, 20 * time.Second, false},
		{"for ever comes first", []corev1.Taint{taint("a")},
			[]corev1.Toleration{exists("", nil), exists("a", new(int64(60)))}, 0, false},
		{"for a while comes first", []corev1.Taint{taint("a")},
			[]corev1.Toleration{exists("a", new(int64(60))), exists("", nil)}, 50 * time.Second, false},
		{"no time added: from when it is seen", []corev1.Taint{untimed(taint("a"))},
			[]corev1.Toleration{exists("a", new(int64(60)))}, 60 * time.Second, false},
		{"one of two", []corev1.Taint{taint("a"), taint("b")}, []corev1.Toleration{exists("a", nil)}, 0, true},
		{"other value", []corev1.Taint{taint("a")}, []corev1.Toleration{{Key: "a", Value: "w"}}, 0, true},
		{"same value", []corev1.Taint{taint("a")}, []corev1.Toleration{{Key: "a", Value: "v"}}, 0, false},
		{"other effect", []corev1.Taint{taint("a")},
			[]corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
			0, true},
	} {
		if wait, evict := decide(newSightings().note("n", c.taints, now), c.tolerations, time.Time{},
			now); wait != c.wait || evict != c.evict {
			t.Errorf("%s: wait %s evict %v, want %s %v", c.name, wait, evict, c.wait, c.evict)
		}
	}
}
