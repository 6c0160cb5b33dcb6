package nodepreferavoidpods

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/model"
)

func TestScore(t *testing.T) {
	t.Parallel()
	const avoid = `{"preferAvoidPods": [{"podSignature": {"podController": {"apiVersion": "v1", "kind": "ReplicationController", "name": "rc", "uid": "u1"}}}, {"podSignature": {}}]}`
	pod := func(kind, uid string) *model.PodInfo {
		p := &corev1.Pod{}
		if kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, UID: types.UID(uid), Controller: new(true)}}
		}
		return model.NewPodInfo(p)
	}
	for _, c := range []struct {
		name, annotation string
		pod              *model.PodInfo
		want             int64
	}{
		{"its controller is named", avoid, pod("ReplicationController", "u1"), 0},
		{"another one is", avoid, pod("ReplicationController", "u2"), 100},
		{"another kind", avoid, pod("ReplicaSet", "u1"), 100},
		{"a kind that is not looked at",
			`{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "Job", "uid": "u1"}}}]}`,
			pod("Job", "u1"), 100},
		{"no controller", avoid, pod("", ""), 100},
		{"no annotation", "", pod("ReplicationController", "u1"), 100},
		{"nonsense", "{", pod("ReplicationController", "u1"), 100},
	} {
		n := &corev1.Node{}
		if c.annotation != "" {
			n.Annotations = map[string]string{"scheduler.alpha.kubernetes.io/preferAvoidPods": c.annotation}
		}
		if got := (Plugin{}).Score(nil, c.pod, model.NewNodeInfo(n)); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	key := model.KeyOf(Plugin{}.Reads)
	if key(pod("ReplicaSet", "u1")) == key(pod("ReplicaSet", "u2")) || key(pod("Job", "u1")) != key(pod("", "")) {
		t.Error("keys do not tell controllers apart, or tell of those that are not looked at")
	}
}
