package persistentvolume

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/controllertest"
)

// TestMetrics: upstream's names and labels.
func TestMetrics(t *testing.T) {
	t.Parallel()
	d := (&controllertest.Fake{}).Deps(t, time.Time{})
	r := prometheus.NewRegistry()
	d.Metrics = controller.NewMetrics(r)
	c, err := New(d, Config{Period: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
	v.Spec.StorageClassName, v.Spec.HostPath, v.Status.Phase = "s", &corev1.HostPathVolumeSource{}, corev1.VolumeBound
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	claim.Spec.StorageClassName, claim.Status.Phase = ptr.To("s"), corev1.ClaimPending
	controllertest.Put(t, c.volumes.cache, v)
	controllertest.Put(t, c.claims.cache, claim)
	c.metrics.gaveClass(nil)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		for _, m := range f.Metric {
			if n := m.GetGauge().GetValue() + m.GetCounter().GetValue(); n > 0 {
				var labels []string
				for _, l := range m.Label {
					labels = append(labels, l.GetName()+"="+l.GetValue())
				}
				got = append(got, fmt.Sprint(f.GetName(), labels, n))
			}
		}
	}
	want := []string{
		"pv_collector_bound_pv_count[storage_class=s] 1",
		"pv_collector_total_pv_count[plugin_name=kubernetes.io/host-path volume_mode=Filesystem] 1",
		"pv_collector_unbound_pvc_count[namespace=ns storage_class=s volume_attributes_class=] 1",
		"retroactive_storageclass_total[] 1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
