package nodelifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// TestMetrics: the zones as the last survey saw them, and the nodes that were given up.
func TestMetrics(t *testing.T) {
	t.Parallel()
	d := (&controllertest.Fake{}).Deps(t, time.Time{})
	r := prometheus.NewPedanticRegistry()
	d.Metrics = controller.NewMetrics(r)
	c, err := New(d, Config{Grace: time.Minute, Startup: time.Minute, Period: time.Second,
		Evictions: Evictions{Rate: 1}})
	if err != nil {
		t.Fatal(err)
	}
	node := func(name string, ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{corev1.LabelTopologyRegion: "r", corev1.LabelTopologyZone: "z"}},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	good, bad := node("good", corev1.ConditionTrue), node("bad", corev1.ConditionUnknown)
	controllertest.Put(t, c.nodes, good, node("other", corev1.ConditionTrue), node("third", corev1.ConditionTrue), bad)
	if _, err := c.survey(t.Context(), struct{}{}); err != nil {
		t.Fatal(err)
	}
	gone := bad.DeepCopy()
	gone.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute}}
	c.metrics.tainted(bad, gone)
	c.metrics.tainted(gone, gone)
	c.metrics.tainted(good, good)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == "r:\x00:z" {
				got[strings.TrimPrefix(f.GetName(), "node_collector_")] = m.GetGauge().GetValue() +
					m.GetCounter().GetValue()
			}
		}
	}
	for name, want := range map[string]float64{"zone_size": 4, "zone_health": 75, "unhealthy_nodes_in_zone": 1,
		"evictions_total": 1} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
