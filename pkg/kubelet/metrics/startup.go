package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// startup tells how long the node took to come up, part by part. What has not been reached yet is 0.
type startup struct {
	machine, began, registering, registered time.Time

	before, preparing, registration, after, total prometheus.Gauge
}

func newStartup(r prometheus.Registerer) *startup {
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(
			prometheus.GaugeOpts{Name: "kubelet_node_startup_" + name + "duration_seconds", Help: help})
		r.MustRegister(g)
		return g
	}
	return &startup{
		before: gauge("pre_kubelet_", "Seconds from the machine's start to the kubelet's."),
		preparing: gauge("pre_registration_",
			"Seconds from the kubelet's start to its first try to register the node."),
		registration: gauge("registration_", "Seconds that the registration took."),
		after:        gauge("post_registration_", "Seconds from the registration to the node's being ready."),
		total:        gauge("", "Seconds from the machine's start to the node's being ready."),
	}
}

// Began records when the machine and the kubelet started. It comes before the other steps; each of these comes once.
func (m *startup) Began(machine, kubelet time.Time) {
	m.machine, m.began = machine, kubelet
	m.before.Set(kubelet.Sub(machine).Seconds())
}

// Registering takes when the node was first to be registered.
func (m *startup) Registering(at time.Time) {
	m.registering = at
	m.preparing.Set(at.Sub(m.began).Seconds())
}

// Registered takes when the API had the node.
func (m *startup) Registered(at time.Time) {
	m.registered = at
	m.registration.Set(at.Sub(m.registering).Seconds())
}

// Ready takes when the API had a node that is ready.
func (m *startup) Ready(at time.Time) {
	m.after.Set(at.Sub(m.registered).Seconds())
	m.total.Set(at.Sub(m.machine).Seconds())
}
