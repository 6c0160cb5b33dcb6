package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bonsai/pkg/apiserver/storage/etcdtest"
)

// TestObjectCounts: objects are counted while they are there, those of a custom resource as long as it is served, and
// those that two groups serve once.
func TestObjectCounts(t *testing.T) {
	t.Parallel()
	s := startOurs(t, "--etcd-servers="+etcdtest.Start(t).Endpoint)
	const definitions, widgets = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		"/apis/example.org/v1/widgets"
	const series = `apiserver_resource_objects{group="example.org",resource="widgets"}`
	s.ask(t, http.MethodPost, definitions, `{"metadata": {"name": "widgets.example.org"}, "spec": {
		"group": "example.org", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{
			"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}`)
	s.await(t, widgets)
	shows := func(what string, has bool) {
		t.Helper()
		s.until(t, "/metrics", func(_ int, page string) bool { return strings.Contains(page, what) == has })
	}
	shows(series+" 0\n", true)
	for n := range 3 {
		s.ask(t, http.MethodPost, widgets, fmt.Sprintf(
			`{"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "w%d"}}`, n))
	}
	shows(series+" 3\n", true)
	s.ask(t, http.MethodDelete, widgets+"/w1", "")
	shows(series+" 2\n", true)
	s.ask(t, http.MethodDelete, definitions+"/widgets.example.org", "")
	shows(series, false)
	s.ask(t, http.MethodGet, "/apis/events.k8s.io/v1/events", "")
	shows(`apiserver_resource_objects{group="",resource="events"} `, true)
	shows(`apiserver_resource_objects{group="events.k8s.io"`, false)
}
