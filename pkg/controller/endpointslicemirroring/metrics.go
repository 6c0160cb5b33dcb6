package endpointslicemirroring

import (
	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"bonsai/pkg/controller"
	"bonsai/pkg/controller/backends"
)

const subsystem = "endpoint_slice_mirroring_controller"

// metrics are upstream's, by its names.
type metrics struct {
	*backends.Metrics
	updated, skipped, took prometheus.Histogram
}

func newMetrics(m *controller.Metrics) *metrics {
	out := &metrics{
		Metrics: backends.NewMetrics(m, subsystem),
		updated: backends.PerSync(subsystem, "endpoints_updated_per_sync",
			"Addresses of Endpoints that stayed, but whose other fields changed."),
		skipped: backends.PerSync(subsystem, "addresses_skipped_per_sync",
			"Addresses of Endpoints that were left out because they are too many."),
		took: prometheus.NewHistogram(prometheus.HistogramOpts{Subsystem: subsystem, Name: "endpoints_sync_duration",
			Help:    "Seconds in which the slices of one Endpoints were written.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 15)}),
	}
	m.Register(out.updated)
	m.Register(out.skipped)
	m.Register(out.took)
	return out
}

// planned counts what is to become of the slices of Endpoints.
func (m *metrics) planned(key controller.Key, wanted map[groupKey]*portGroup, have []*discoveryv1.EndpointSlice,
	p changes, most, skipped int) {
	size := backends.Size{Slices: len(have) + len(p.create) - len(p.remove)}
	type address struct {
		family  discoveryv1.AddressType
		address string
	}
	before := map[address]discoveryv1.Endpoint{}
	for _, s := range have {
		for _, e := range s.Endpoints {
			before[address{s.AddressType, e.Addresses[0]}] = e
		}
	}
	added, updated := 0, 0
	for of, g := range wanted {
		size.Endpoints += len(g.endpoints)
		size.Ideal += backends.Ideal(len(g.endpoints), most)
		for _, e := range g.endpoints {
			at := address{of.family, e.Addresses[0]}
			was, had := before[at]
			switch {
			case !had:
				added++
			case !equality.Semantic.DeepEqual(was, e):
				updated++
			}
			delete(before, at)
		}
	}
	m.Moved(added, len(before))
	m.updated.Observe(float64(updated))
	m.skipped.Observe(float64(skipped))
	m.Set(key, size)
}
