package kubelet

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/runtime"
)

// countPods registers the metrics of pods. They are computed when they are scraped, from the same state that the
// kubelet works on, so that they cannot drift from it.
func countPods(r prometheus.Registerer, nodeName string, cgroupVersion int, s signals) {
	// A scrape walks the pods once for each metric. A node has 110 pods by default, so that costs less than counters
	// that must be kept right.
	static := func(list func() []*corev1.Pod, static bool) func() float64 {
		return func() (n float64) {
			for _, p := range list() {
				if runtime.IsStatic(p) == static {
					n++
				}
			}
			return n
		}
	}
	add := func(name, help string, labels prometheus.Labels, f func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, f))
	}
	for label, is := range map[string]bool{"": false, "true": true} {
		l := prometheus.Labels{"static": label}
		add("kubelet_active_pods", "Pods whose containers may run; static: true or empty.", l, static(s.active, is))
		add("kubelet_desired_pods", "Pods that the kubelet should run; static: true or empty.", l,
			static(s.pods.Desired, is))
	}
	add("kubelet_mirror_pods", "Mirror pods that the kubelet will try to make, one for each static pod that it took.",
		nil, static(s.active, true))
	add("kubelet_managed_ephemeral_containers", "Ephemeral containers in the pods of this kubelet.", nil,
		func() (n float64) {
			for _, p := range s.pods.Desired() {
				n += float64(len(p.Spec.EphemeralContainers))
			}
			return n
		})
	add("kubelet_node_name", "The node's name. The count is always 1.", prometheus.Labels{"node": nodeName},
		func() float64 { return 1 })
	add("kubelet_cgroup_version", "Version of the node's cgroups.", nil,
		func() float64 { return float64(cgroupVersion) })
}

// countRecords registers the metrics of the records of pulled images, which are computed when they are scraped.
func countRecords(r prometheus.Registerer, records *images.Records) {
	add := func(name, help string, f func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "kubelet_imagemanager_ondisk_" + name,
			Help: help}, f))
	}
	add("pullintents", "Pulls of images that are noted on the disk as begun.",
		func() float64 { n, _ := records.Count(); return float64(n) })
	add("pulledrecords", "Images that are noted on the disk with what they were pulled with.",
		func() float64 { _, n := records.Count(); return float64(n) })
}

// workingPods counts the pods that have workers when it is scraped. It reports every combination of labels, even those
// without pods: a combination that loses its last pod must not keep its last figure.
type workingPods struct {
	count func() map[podworker.Kind]int
	desc  *prometheus.Desc
}

func newWorkingPods(count func() map[podworker.Kind]int) *workingPods {
	return &workingPods{count, prometheus.NewDesc("kubelet_working_pods",
		"Pods that the kubelet works on; lifecycle: sync, terminating or terminated; config: desired, orphan "+
			"(gone from its source) or runtime_only (no source told of it); static: true, empty or unknown.",
		[]string{"config", "lifecycle", "static"}, nil)}
}

// Describe implements prometheus.Collector.
func (w *workingPods) Describe(to chan<- *prometheus.Desc) { to <- w.desc }

// Collect implements prometheus.Collector. The labels and their combinations are upstream's; dashboards expect them.
func (w *workingPods) Collect(to chan<- prometheus.Metric) {
	type series struct{ config, lifecycle, static string }
	all := map[series]int{}
	for _, lifecycle := range []string{"sync", "terminating", "terminated"} {
		all[series{"runtime_only", lifecycle, "unknown"}] = 0
		for _, static := range []string{"", "true"} {
			all[series{"desired", lifecycle, static}], all[series{"orphan", lifecycle, static}] = 0, 0
		}
	}
	for k, n := range w.count() {
		// "terminated" stands for every state but the two below.
		s := series{"desired", "terminated", ""}
		switch k.State {
		case podworker.Syncing:
			s.lifecycle = "sync"
		case podworker.Terminating:
			s.lifecycle = "terminating"
		}
		if k.Static {
			s.static = "true"
		}
		switch {
		case k.Found: // upstream does not say whether these are static
			s.config, s.static = "runtime_only", "unknown"
		case k.Removed:
			s.config = "orphan"
		}
		all[s] += n
	}
	for s, n := range all {
		to <- prometheus.MustNewConstMetric(w.desc, prometheus.GaugeValue, float64(n), s.config, s.lifecycle, s.static)
	}
}
