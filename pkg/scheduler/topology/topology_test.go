package topology

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/model"
)

func TestDimensionFollowsNodes(t *testing.T) {
	t.Parallel()
	node := func(labels map[string]string) *model.NodeInfo {
		return model.NewNodeInfo(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
	}
	zone := func(v string) *model.NodeInfo { return node(map[string]string{"zone": v}) }
	d := NewDimension("zone")
	for i, c := range []struct {
		slot int
		node *model.NodeInfo
		want int32
	}{
		{3, zone("a"), 0}, // slots may come in any order
		{0, zone("b"), 1},
		{1, zone("a"), 0},
		{2, node(map[string]string{"rack": "a"}), None},
		{4, zone(""), 2},     // an empty value is a domain
		{0, zone("a"), 0},    // moved
		{3, nil, None},       // gone
		{3, zone("b"), 1},    // the slot taken again; a domain without nodes keeps its number
		{1, node(nil), None}, // the label taken away
	} {
		if got := d.Set(c.slot, c.node); got != c.want || d.Of(c.slot) != c.want {
			t.Errorf("step %d: Set says %d, Of says %d, want %d", i, got, d.Of(c.slot), c.want)
		}
	}
	if d.Len() != 3 {
		t.Errorf("%d domains, want 3", d.Len())
	}
	if d.Of(99) != None {
		t.Errorf("a slot never set is in domain %d", d.Of(99))
	}
}

func TestGrow(t *testing.T) {
	t.Parallel()
	list := Grow([]int{7}, 2)
	if len(list) != 3 || list[0] != 7 || list[2] != 0 {
		t.Errorf("grown to %v", list)
	}
	if list = Grow(list, 0); len(list) != 3 {
		t.Errorf("long enough already, but now %v", list)
	}
}
