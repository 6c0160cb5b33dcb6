package framework

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/model"
)

func nodeNamed(name string) *model.NodeInfo {
	return model.NewNodeInfo(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
}

func TestMessage(t *testing.T) {
	t.Parallel()
	snapshot := model.NewSnapshot(nodeNamed("n1"), nodeNamed("n2"), nodeNamed("n3"))
	d := NewDiagnosis(snapshot)
	shared := &Status{Code: Unschedulable, Reasons: []string{"Insufficient memory", "Insufficient cpu"}, Plugin: "Fit"}
	d.Reject(snapshot.Get("n1"), shared)
	d.Reject(snapshot.Get("n2"), shared)
	d.Reject(snapshot.Get("n3"),
		&Status{Code: UnschedulableAndUnresolvable, Reasons: []string{"node(s) were unschedulable"}, Plugin: "Cordon"})
	const want = "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu, 2 Insufficient memory."
	if got := d.Message(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	d.PostFilter = "preemption: nobody."
	if got := (&FitError{Diagnosis: d}).Error(); got != want+" preemption: nobody." {
		t.Errorf("with preemption: %q", got)
	}
	if got := slices.Sorted(maps.Keys(d.Plugins)); !slices.Equal(got, []string{"Cordon", "Fit"}) {
		t.Errorf("plug-ins %v", got)
	}
	d.PreFilter = "node(s) didn't satisfy plugin A"
	if got := d.Message(); got != "0/3 nodes are available: node(s) didn't satisfy plugin A. preemption: nobody." {
		t.Errorf("refused as a whole: %q", got)
	}
	if got := NewDiagnosis(model.NewSnapshot()).Message(); got != "no nodes available to schedule pods" {
		t.Errorf("empty cluster: %q", got)
	}
}

// TestARefusalByEveryNodeIsOneList: pods that fit nowhere are tried again and again, so what a diagnosis allocates must
// not grow in number with the nodes.
func TestARefusalByEveryNodeIsOneList(t *testing.T) { // not parallel: it counts allocations
	allocations := func(count int) float64 {
		var nodes []*model.NodeInfo
		for i := range count {
			nodes = append(nodes, nodeNamed(fmt.Sprint("n", i)))
		}
		snapshot, full := model.NewSnapshot(nodes...),
			&Status{Code: Unschedulable, Reasons: []string{"full"}, Plugin: "Fit"}
		return testing.AllocsPerRun(5, func() {
			d := NewDiagnosis(snapshot)
			for _, n := range nodes {
				d.Reject(n, full)
			}
			if got := d.Counts(); got["full"] != count {
				t.Errorf("%d nodes counted as %v", count, got)
			}
		})
	}
	if few, many := allocations(50), allocations(5000); many > few {
		t.Errorf("%v allocations for 5000 nodes, %v for 50", many, few)
	}
}

func TestCompactKeepsTheMessageOfAllNodes(t *testing.T) {
	t.Parallel()
	var nodes []*model.NodeInfo
	for i := range keepNodes + 5 {
		nodes = append(nodes, nodeNamed(strings.Repeat("n", i+1)))
	}
	d := NewDiagnosis(model.NewSnapshot(nodes...))
	for _, n := range nodes {
		d.Reject(n, NewStatus(Unschedulable, "full"))
	}
	want := d.Message()
	d.Compact()
	if d.Message() != want || !strings.Contains(want, "105 full") {
		t.Errorf("%q, before %q", d.Message(), want)
	}
	if len(maps.Collect(d.Statuses)) != keepNodes || d.Snapshot != nil {
		t.Errorf("still keeps %d nodes and the snapshot %v", len(maps.Collect(d.Statuses)), d.Snapshot)
	}
}
