package replicaset

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/controller"
)

// newAges registers upstream's metric of how old the pods are that go, of ReplicaSets.
func newAges(m *controller.Metrics) prometheus.Observer {
	h := prometheus.NewHistogram(
		prometheus.HistogramOpts{Subsystem: "replicaset_controller", Name: "sorting_deletion_age_ratio",
			Help:    "Age of a ready pod that is deleted because its set shrinks, as a multiple of the youngest ready pod's.",
			Buckets: prometheus.ExponentialBuckets(0.25, 2, 6)})
	m.Register(h)
	return h
}

// chose counts the ages of the pods that were chosen to be deleted, of those that are ready.
func (c *Controller) chose(active, chosen []*corev1.Pod, now time.Time) {
	if c.ages == nil {
		return
	}
	var youngest time.Time
	for _, p := range active {
		if at := p.CreationTimestamp.Time; controller.PodReady(p) && at.After(youngest) {
			youngest = at
		}
	}
	least := now.Sub(youngest)
	if least <= 0 {
		return
	}
	for _, p := range chosen {
		if controller.PodReady(p) {
			c.ages.Observe(float64(now.Sub(p.CreationTimestamp.Time)) / float64(least))
		}
	}
}
