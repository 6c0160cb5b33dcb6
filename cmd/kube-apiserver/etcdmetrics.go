package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage/etcd"
)

// resourceOf returns the resource whose key, or prefix of keys, a text is. The keys of custom resources begin with
// group and resource; of other keys, which no resource has, the resource is "".
func resourceOf(rows []resources.Row) func(key string) schema.GroupResource {
	known := map[string]schema.GroupResource{}
	for i := range rows {
		if row := &rows[i]; !row.NotStored {
			known[registry.Prefix(row)] = row.GroupResource()
		}
	}
	return func(key string) schema.GroupResource {
		// A prefix is "/registry/" and one or two parts.
		parts := strings.SplitAfterN(key, "/", 5)
		if len(parts) < 4 {
			return schema.GroupResource{}
		}
		if gr, ok := known[strings.Join(parts[:3], "")]; ok {
			return gr
		}
		if gr, ok := known[strings.Join(parts[:4], "")]; ok {
			return gr
		}
		if group := strings.TrimSuffix(parts[2], "/"); strings.Contains(group, ".") {
			return schema.GroupResource{Group: group, Resource: strings.TrimSuffix(parts[3], "/")}
		}
		return schema.GroupResource{}
	}
}

// sizeTimeout bounds the question for the size of a database, for a page of metrics.
const sizeTimeout = 2 * time.Second

// databaseSizes are the sizes of the databases of etcds, asked when the metrics are read. One that does not answer is
// left out.
type databaseSizes []*store

var databaseSize = prometheus.NewDesc("apiserver_storage_size_bytes",
	"[STABLE] Bytes that the database of an etcd takes on the disk.", []string{"storage_cluster_id"}, nil)

// Describe implements prometheus.Collector.
func (databaseSizes) Describe(out chan<- *prometheus.Desc) { out <- databaseSize }

// Collect implements prometheus.Collector.
func (d databaseSizes) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), sizeTimeout)
	defer cancel()
	for n, one := range d {
		if size, err := etcd.Size(ctx, one.backend); err == nil {
			out <- prometheus.MustNewConstMetric(databaseSize, prometheus.GaugeValue, float64(size),
				fmt.Sprintf("etcd-%d", n))
		}
	}
}
