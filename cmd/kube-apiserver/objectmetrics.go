package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
)

// objects tells how many objects of each resource there are, when the metrics are read. A resource that nobody has read
// since the start is left out, for it is not counted for the metrics alone.
type objects struct {
	served *catalog.Catalog
	// count returns how many there are under the prefix of a resource, and whether that is known.
	count func(prefix string) (int, bool)
}

var objectCount = prometheus.NewDesc("apiserver_resource_objects",
	"[ALPHA] Stored objects of a resource that has been read since the start.", []string{"group", "resource"}, nil)

// Describe implements prometheus.Collector.
func (*objects) Describe(out chan<- *prometheus.Desc) { out <- objectCount }

// Collect implements prometheus.Collector. Objects that are served in two groups count in the one that they are stored
// in.
func (o *objects) Collect(out chan<- prometheus.Metric) {
	for _, r := range o.served.Snapshot().Resources() {
		if r.Row.NotStored || r.Row.Stored != nil {
			continue
		}
		if n, known := o.count(registry.Prefix(r.Row)); known {
			gr := r.Row.GroupResource()
			out <- prometheus.MustNewConstMetric(objectCount, prometheus.GaugeValue, float64(n), gr.Group, gr.Resource)
		}
	}
}
