package kubelet

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/events"
	"bonsai/pkg/kubelet/eviction"
	"bonsai/pkg/kubelet/metrics"
	"bonsai/pkg/kubelet/notify"
	"bonsai/pkg/kubelet/podmanager"
	"bonsai/pkg/kubelet/podsyncer"
	"bonsai/pkg/kubelet/podworker"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/shutdown"
	"bonsai/pkg/kubelet/status"
)

// reporting is how the kubelet shows what it does: metrics, events and the statuses of pods.
type reporting struct {
	metrics *metrics.Metrics
	// probes has the metrics of probes, which are served apart.
	probes *prometheus.Registry
	events *events.Recorder
	status *status.Writer
}

// It starts the goroutines of the status writer and of the events, so the caller must close it, even if Run never runs.
func newReporting(cfg *Config) reporting {
	m := metrics.New(cfg.Metrics)
	m.Began(machineStarted(), time.Now())
	return reporting{metrics: m, probes: prometheus.NewRegistry(),
		events: events.New(cfg.Client.Scheme(), cfg.NodeName),
		status: status.New(cfg.Client, m.StatusSynced, cfg.Tracer, cfg.Log)}
}

// close ends the goroutines that newReporting started.
func (r reporting) close() {
	r.status.Close()
	r.events.Close()
}

// signals tie the parts together: which pods there are, how to wake their workers, and what is wrong with the node.
// They are made before any part that uses them, so that no part needs a part that is made after it.
//
// They have the locks of their own packages and may be used from any goroutine. Most calls only set a mark and return:
// whoever reports a change must not wait for its effect.
type signals struct {
	pods *podmanager.Manager
	// workers wakes a pod's worker, or interrupts what it does.
	workers *podworker.Workers
	// changes notifies the worker that ends a pod of what happens to its containers.
	changes *podsyncer.Changes
	// node is notified when something changed that the Node's status shows.
	node notify.Signal
	// pressure and shutdown are answers that the admission of pods needs, and that managers write which need pods. They
	// exist apart from those managers to break that circle.
	pressure *eviction.Conditions
	shutdown *shutdown.State
}

func newSignals(cfg *Config, r reporting) signals {
	restarted := func(pod *corev1.Pod) { r.metrics.RestartedPod(runtime.IsStatic(pod)) }
	return signals{pods: podmanager.New(podmanager.Config{Status: r.status, Client: cfg.Client,
		Changed: r.status.Changed().Notify, Log: cfg.Log}),
		workers: podworker.New(restarted, r.metrics, cfg.Log), changes: podsyncer.NewChanges(), node: notify.New(),
		pressure: &eviction.Conditions{}, shutdown: &shutdown.State{}}
}

// active returns the pods whose containers may run. Active filters the slice in place.
func (s signals) active() []*corev1.Pod { return s.workers.Active(s.pods.Desired()) }

// changed reports that something happened to a pod in the runtime or to its probes. A pod that runs is synced again;
// for one that ends, changes refreshes the status while its containers use their grace period. The order does not
// matter: each is a mark that its goroutine takes up later.
func (s signals) changed(uid types.UID) {
	s.changes.Notify(uid)
	s.workers.Wake(uid)
}

// refuse returns why the node takes no such pod at present, nil if it does.
func (s signals) refuse(pod *corev1.Pod) *admission.Rejection {
	if why := s.pressure.Refuse(pod); why != "" {
		return &admission.Rejection{Reason: runtime.ReasonEvicted, Message: why}
	}
	if why := s.shutdown.Refuse(); why != "" {
		return &admission.Rejection{Reason: shutdown.ReasonRefused, Message: why}
	}
	return nil
}
