package metrics

import (
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
)

// images are the images that containers need and that they have as volumes.
type images struct {
	ensured   *prometheus.CounterVec
	checks    *prometheus.CounterVec
	asked     prometheus.Counter
	mounted   prometheus.Counter
	unmounted prometheus.Counter
}

func newImages(r prometheus.Registerer) *images {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "kubelet_image_volume_" + name, Help: help})
	}
	m := &images{
		ensured: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "kubelet_image_manager_ensure_image_requests_total",
				Help: "Images that containers needed; whether they were on the node and had to be pulled: true, false or unknown."}, []string{"pull_policy", "present_locally", "pull_required"}),
		checks: prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "kubelet_imagemanager_image_mustpull_checks_total",
				Help: "Looks at whether a pod may use an image that is on the node; result: credentialPolicyAllowed, credentialRecordFound, mustAuthenticate or error."}, []string{"result"}),
		asked:     counter("requested_total", "Images that containers were to have as volumes."),
		mounted:   counter("mounted_succeed_total", "Images that containers have got as volumes."),
		unmounted: counter("mounted_errors_total", "Images that the runtime could not mount as volumes."),
	}
	r.MustRegister(m.ensured, m.checks, m.asked, m.mounted, m.unmounted)
	return m
}

// ImageEnsured counts an image that was asked for; nil: it did not become known whether it was present, or had to be
// pulled.
func (m *images) ImageEnsured(policy corev1.PullPolicy, present, pull *bool) {
	m.ensured.WithLabelValues(strings.ToLower(string(policy)), ifKnown(present), ifKnown(pull)).Inc()
}

func ifKnown(b *bool) string {
	if b == nil {
		return "unknown"
	}
	return strconv.FormatBool(*b)
}

// ImageChecked counts a look at whether a pod may use an image that is present.
func (m *images) ImageChecked(result string) {
	m.checks.WithLabelValues(result).Inc()
}

// ImageVolumeAsked counts an image that a container is to have as a volume.
func (m *images) ImageVolumeAsked() {
	m.asked.Inc()
}

// ImageVolumesMounted counts n of them that it has got, or that could not be mounted.
func (m *images) ImageVolumesMounted(n int, ok bool) {
	if ok {
		m.mounted.Add(float64(n))
		return
	}
	m.unmounted.Add(float64(n))
}
