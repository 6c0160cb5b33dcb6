package apiserver_test

import (
	"strings"
	"testing"

	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/assemble"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/runtimeconfig"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

// TestRuntimeConfig: what is switched off is not served, not in discovery, and not in OpenAPI, as by a real
// kube-apiserver v1.36.3.
func TestRuntimeConfig(t *testing.T) {
	t.Parallel()
	config, err := runtimeconfig.Parse(map[string]string{"batch/v1": "false", "batch/v1/jobs": "true",
		"apps/v1/deployments": "false", "autoscaling/v1": "false", "policy/v1": "false"}, rows.All())
	if err != nil {
		t.Fatal(err)
	}
	url := start(t, func(c *assemble.Config) {
		facts := &storage.FactsTable{}
		if c.Catalog, err = catalog.New(t.Context(), catalog.Config{Facts: facts, Off: config.Off}); err != nil {
			t.Fatal(err)
		}
		c.Storage = memory.New(facts)
	})
	for _, c := range []struct {
		path    string
		code    int
		has     string
		without string
	}{
		{"/apis/batch/v1/jobs", 200, `"items":[]`, ""},
		{"/apis/batch/v1/cronjobs", 404, "the server could not find the requested resource", ""},
		{"/apis/batch/v1", 200, `"jobs/status"`, "cronjobs"},
		{"/apis/apps/v1/namespaces/x/deployments", 404, "the server could not find the requested resource", ""},
		{"/apis/apps/v1/namespaces/x/deployments/y/scale", 404, "", ""},
		{"/apis/apps/v1", 200, `"daemonsets"`, "deployments"},
		{"/apis/autoscaling", 200, `"autoscaling/v2"`, `"autoscaling/v1"`},
		{"/apis/autoscaling/v1", 404, "", ""},
		{"/apis/policy", 404, "404 page not found", ""},
		{"/apis/policy/v1/poddisruptionbudgets", 404, "404 page not found", ""},
		{"/apis", 200, `"apps"`, `"policy"`},
		{"/openapi/v3", 200, "apis/autoscaling/v2", "apis/autoscaling/v1"},
		{"/openapi/v3/apis/apps/v1", 200, "/apis/apps/v1/daemonsets", "/apis/apps/v1/deployments"},
		{"/openapi/v2", 200, "/apis/apps/v1/daemonsets", "/apis/apps/v1/deployments"},
	} {
		code, _, body := call(t, "GET", url+c.path, "")
		compact := strings.NewReplacer(" ", "", "\n", "").Replace(body)
		if code != c.code || !strings.Contains(body, c.has) && !strings.Contains(compact, c.has) ||
			c.without != "" && strings.Contains(body, c.without) {
			t.Errorf("%s: %d %.400s", c.path, code, body)
		}
	}
}
