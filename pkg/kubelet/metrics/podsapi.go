package metrics

import "github.com/prometheus/client_golang/prometheus"

// podsAPI counts the requests of the pods API.
type podsAPI struct {
	all  *prometheus.CounterVec
	each map[string]*prometheus.CounterVec
}

func newPodsAPI(r prometheus.Registerer) podsAPI {
	by := func(name, help string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help},
			[]string{"server_api_version", "status_code"})
		r.MustRegister(c)
		return c
	}
	m := podsAPI{all: by("kubelet_pod_requests_total", "Requests of the pods API, by their gRPC status."),
		each: map[string]*prometheus.CounterVec{}}
	for _, what := range []string{"list", "get", "watch"} {
		m.each[what] = by("kubelet_pod_requests_"+what+"_total", "Requests of the pods API of one kind.")
	}
	// A slow watcher gets several changes as one.
	r.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "kubelet_pod_watch_events_dropped_total",
		Help: "Always 0: no change is lost to a watch of the pods API."}))
	return m
}

// PodsAsked counts a request: list, get or watch.
func (m podsAPI) PodsAsked(what, code string) {
	m.all.WithLabelValues("v1alpha1", code).Inc()
	m.each[what].WithLabelValues("v1alpha1", code).Inc()
}
