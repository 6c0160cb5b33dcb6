package resourceclaim

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	resourcev1 "k8s.io/api/resource/v1"

	"bonsai/pkg/controller"
)

// kept counts the claims in the cache when it is asked.
type kept struct {
	claims *controller.Informer[*resourcev1.ResourceClaim]
	desc   *prometheus.Desc
}

func newKept(claims *controller.Informer[*resourcev1.ResourceClaim]) *kept {
	return &kept{claims: claims, desc: prometheus.NewDesc("dynamic_resource_allocation_resource_claims",
		"Number of ResourceClaims, categorized by allocation status, admin access, and source. Source can be 'resource_claim_template' (created from a template), "+
			"'extended_resource' (extended resources), or empty (manually created by a user).",
		[]string{"allocated", "admin_access", "source"}, nil)}
}

// Describe implements prometheus.Collector.
func (k *kept) Describe(ch chan<- *prometheus.Desc) { ch <- k.desc }

// Collect implements prometheus.Collector.
func (k *kept) Collect(ch chan<- prometheus.Metric) {
	type labels struct {
		allocated, admin bool
		source           string
	}
	counts := map[labels]int{}
	for _, c := range k.claims.List() {
		counts[labels{c.Status.Allocation != nil, admin(&c.Spec), source(c)}]++
	}
	for l, n := range counts {
		ch <- prometheus.MustNewConstMetric(k.desc, prometheus.GaugeValue, float64(n), strconv.FormatBool(l.allocated),
			strconv.FormatBool(l.admin), l.source)
	}
}
