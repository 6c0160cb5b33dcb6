package main

import (
	"testing"

	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/etcd"
	"bonsai/pkg/referencetest"
)

// TestReferenceMetrics: docs/reference has the metrics of the storage as they are.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	r := referencetest.NewRegistry()
	etcd.NewMetrics(r, resourceOf(rows.All()))
	served, err := catalog.New(t.Context(), catalog.Config{Facts: &storage.FactsTable{}})
	if err != nil {
		t.Fatal(err)
	}
	r.MustRegister(databaseSizes(nil), &objects{served: served})
	referencetest.MetricsPage(t, "kube-apiserver-storage", "Metrics of the storage", "At `/metrics` of kube-apiserver.",
		"./cmd/kube-apiserver", r.Metrics())
}
