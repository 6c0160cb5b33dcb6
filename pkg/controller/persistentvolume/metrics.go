package persistentvolume

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"bonsai/api/core"
	"bonsai/pkg/controller"
)

// metrics are upstream's, by its names: they are counted from the caches when they are asked for.
type metrics struct {
	claims  *controller.Informer[*corev1.PersistentVolumeClaim]
	volumes *controller.Informer[*corev1.PersistentVolume]

	boundVolumes, unboundVolumes, boundClaims, unboundClaims, volumesTotal *prometheus.Desc
	given, notGiven                                                        prometheus.Counter
}

func newMetrics(m *controller.Metrics, claims *controller.Informer[*corev1.PersistentVolumeClaim],
	volumes *controller.Informer[*corev1.PersistentVolume]) *metrics {
	gauge := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("pv_collector_"+name, help, labels, nil)
	}
	of := []string{"namespace", "storage_class", "volume_attributes_class"}
	out := &metrics{
		claims: claims, volumes: volumes,
		boundVolumes: gauge("bound_pv_count", "Gauge measuring number of persistent volume currently bound",
			"storage_class"),
		unboundVolumes: gauge("unbound_pv_count", "Gauge measuring number of persistent volume currently unbound",
			"storage_class"),
		boundClaims: gauge("bound_pvc_count", "Gauge measuring number of persistent volume claim currently bound",
			of...),
		unboundClaims: gauge("unbound_pvc_count",
			"Gauge measuring number of persistent volume claim currently unbound", of...),
		volumesTotal: gauge("total_pv_count", "Gauge measuring total number of persistent volumes", "plugin_name",
			"volume_mode"),
		given: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "retroactive_storageclass_total",
				Help: "Total number of PVCs that were successfully updated with a default StorageClass retroactively."}),
		notGiven: prometheus.NewCounter(
			prometheus.CounterOpts{Name: "retroactive_storageclass_errors_total",
				Help: "Total number of failed retroactive StorageClass assignments to persistent volume claim"}),
	}
	m.Register(out)
	m.Register(out.given)
	m.Register(out.notGiven)
	return out
}

// gaveClass counts a claim that was, or was to be, given the default class.
func (m *metrics) gaveClass(err error) {
	if err != nil {
		m.notGiven.Inc()
		return
	}
	m.given.Inc()
}

// Describe implements prometheus.Collector.
func (m *metrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.boundVolumes, m.unboundVolumes, m.boundClaims, m.unboundClaims,
		m.volumesTotal} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(to chan<- prometheus.Metric) {
	type series struct {
		of     *prometheus.Desc
		labels [3]string
	}
	counts := map[series]float64{}
	for _, v := range m.volumes.List() {
		of := m.unboundVolumes
		if v.Status.Phase == corev1.VolumeBound {
			of = m.boundVolumes
		}
		counts[series{of, [3]string{core.VolumeClass(v)}}]++
		counts[series{m.volumesTotal,
			[3]string{pluginName(&v.Spec.PersistentVolumeSource),
				string(ptr.Deref(v.Spec.VolumeMode, corev1.PersistentVolumeFilesystem))}}]++
	}
	for _, c := range m.claims.List() {
		of := m.unboundClaims
		if c.Status.Phase == corev1.ClaimBound {
			of = m.boundClaims
		}
		counts[series{of, [3]string{c.Namespace, core.ClaimClass(c),
			ptr.Deref(c.Spec.VolumeAttributesClassName, "")}}]++
	}
	labels := map[*prometheus.Desc]int{m.boundVolumes: 1, m.unboundVolumes: 1, m.volumesTotal: 2, m.boundClaims: 3,
		m.unboundClaims: 3}
	for s, n := range counts {
		to <- prometheus.MustNewConstMetric(s.of, prometheus.GaugeValue, n, s.labels[:labels[s.of]]...)
	}
}

// pluginName is what upstream calls the part of Kubernetes that a volume is for.
func pluginName(s *corev1.PersistentVolumeSource) string {
	switch {
	case s.CSI != nil:
		return "kubernetes.io/csi"
	case s.HostPath != nil:
		return "kubernetes.io/host-path"
	case s.Local != nil:
		return "kubernetes.io/local-volume"
	case s.NFS != nil:
		return "kubernetes.io/nfs"
	case s.ISCSI != nil:
		return "kubernetes.io/iscsi"
	case s.FC != nil:
		return "kubernetes.io/fc"
	}
	return "N/A"
}
