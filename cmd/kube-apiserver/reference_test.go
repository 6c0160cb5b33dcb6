package main

import (
	"testing"

	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/referencetest"
)

// TestReferenceMetrics: docs/reference has the metrics of the storage as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	r := referencetest.NewRegistry()
	etcd.NewMetrics(r, resourceOf(rows.All()))
	r.MustRegister(databaseSizes(nil))
	referencetest.MetricsPage(t, "kube-apiserver-storage", "Metrics of the storage", "At `/metrics` of kube-apiserver.",
		"./cmd/kube-apiserver", r.Metrics())
}
