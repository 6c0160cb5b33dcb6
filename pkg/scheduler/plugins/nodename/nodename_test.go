package nodename

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	n := model.NewNodeInfo(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	for name, fits := range map[string]bool{"": true, "n1": true, "n2": false} {
		st := Plugin{}.Filter(nil, model.NewPodInfo(&corev1.Pod{Spec: corev1.PodSpec{NodeName: name}}), n)
		if st.IsSuccess() != fits ||
			!fits && (st.Code != framework.UnschedulableAndUnresolvable ||
				st.Message() != "node(s) didn't match the requested node name") {
			t.Errorf("pod of node %q: %+v, want fits %v", name, st, fits)
		}
	}
}
