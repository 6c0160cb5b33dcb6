package backends

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/controller"
)

// TestTriggers asks again and again about one Service, whose pods change at the seconds given.
func TestTriggers(t *testing.T) {
	t.Parallel()
	tr, svc := NewTriggers(), selecting("ns", "web", nil)
	svc.UID, svc.CreationTimestamp = "one", metav1.NewTime(time.Unix(5, 0))
	for i, c := range []struct {
		service types.UID
		pods    map[types.UID]int64 // when they became ready or not
		want    int64               // 0 is none
	}{
		{"one", nil, 5},
		{"one", map[types.UID]int64{"a": 10}, 10},
		{"one", map[types.UID]int64{"a": 10}, 0},
		{"one", map[types.UID]int64{"a": 10, "b": 12, "c": 11}, 11},
		{"one", map[types.UID]int64{"a": 20, "b": 12}, 20},
		{"two", map[types.UID]int64{"a": 20}, 5},
	} {
		svc.UID = c.service
		var pods []*corev1.Pod
		for uid, at := range c.pods {
			p := backendPod()
			p.UID, p.Status.Conditions[0].LastTransitionTime = uid, metav1.NewTime(time.Unix(at, 0))
			pods = append(pods, p)
		}
		got := tr.Earliest(svc, pods)
		if c.want == 0 && !got.IsZero() || c.want != 0 && !got.Equal(time.Unix(c.want, 0)) {
			t.Errorf("%d: %s, want second %d", i, got, c.want)
		}
	}
	if tr.Forget(controller.KeyOf(svc)); len(tr.known) != 0 {
		t.Errorf("left: %v", tr.known)
	}
}
