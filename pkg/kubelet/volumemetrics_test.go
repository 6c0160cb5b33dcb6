package kubelet

import (
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/volume"
)

type figures struct{}

func (figures) Usage() []volume.Usage {
	c := &corev1.PersistentVolumeClaim{}
	c.Namespace, c.Name = "ns", "data"
	return []volume.Usage{{Claim: c, Capacity: 100, Available: 60, Used: 40, Inodes: 10, InodesFree: 7, InodesUsed: 3}}
}

func (figures) Count() (desired, actual map[string]int) {
	return map[string]int{"csi": 2, "empty-dir": 1}, map[string]int{"csi": 1}
}

// TestVolumeMetrics: upstream's names and labels.
func TestVolumeMetrics(t *testing.T) {
	t.Parallel()
	m := newVolumeMetrics(nil)
	m.volumes = figures{}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(m)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			name := []string{f.GetName()}
			for _, l := range x.GetLabel() {
				name = append(name, l.GetName()+"="+l.GetValue())
			}
			got[strings.Join(name, " ")] = x.GetGauge().GetValue()
		}
	}
	want := map[string]float64{}
	for name, value := range map[string]float64{"capacity_bytes": 100, "available_bytes": 60, "used_bytes": 40,
		"inodes": 10, "inodes_free": 7, "inodes_used": 3} {
		want["kubelet_volume_stats_"+name+" namespace=ns persistentvolumeclaim=data"] = value
	}
	want["volume_manager_total_volumes plugin_name=kubernetes.io/csi state=actual_state_of_world"] = 1
	want["volume_manager_total_volumes plugin_name=kubernetes.io/csi state=desired_state_of_world"] = 2
	want["volume_manager_total_volumes plugin_name=kubernetes.io/empty-dir state=desired_state_of_world"] = 1
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
