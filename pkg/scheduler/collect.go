package scheduler

import (
	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/scheduler/cache"
	"bonsai/pkg/scheduler/queue"
)

// Collector shows the metrics that are read off the queue and the cache when they are asked for.
type Collector struct {
	Queue interface {
		Counts() queue.Counts
		Refused() map[queue.Refusal]int
	}
	Cache interface{ Counts() cache.Counts }
}

var (
	pendingPods = prometheus.NewDesc("scheduler_pending_pods", "Number of pending pods, by the queue they are in.",
		[]string{"queue"}, nil)
	queued = prometheus.NewDesc("scheduler_queued_entities",
		"Number of entities (pods) that wait to be scheduled, by queue and type.",
		[]string{"queue", "type"}, nil)
	refusedPods = prometheus.NewDesc("scheduler_unschedulable_pods",
		"Number of pods without a fitting node, by each plug-in that rejected them at the last attempt.",
		[]string{"plugin", "profile"}, nil)
	cacheSize = prometheus.NewDesc("scheduler_cache_size",
		"Number of nodes, pods and assumed pods in the cache.", []string{"type"}, nil)
)

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- pendingPods
	ch <- queued
	ch <- refusedPods
	ch <- cacheSize
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, n int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(n), labels...)
	}
	waiting := c.Queue.Counts()
	for _, q := range []struct {
		name string
		n    int
	}{{"active", waiting.Active}, {"backoff", waiting.Backoff}, {"unschedulable", waiting.Unschedulable},
		{"gated", waiting.Gated}} {
		gauge(pendingPods, q.n, q.name)
		gauge(queued, q.n, q.name, "pod")
	}
	for by, n := range c.Queue.Refused() {
		gauge(refusedPods, n, by.Plugin, by.Profile)
	}
	known := c.Cache.Counts()
	gauge(cacheSize, known.Nodes, "nodes")
	gauge(cacheSize, known.Pods, "pods")
	gauge(cacheSize, known.Assumed, "assumed_pods")
}
