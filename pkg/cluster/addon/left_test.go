package addon

import (
	"strings"
	"testing"
	"testing/fstest"

	"bonsai/pkg/cluster/plan"
)

// TestPrintLeft: what an add-on leaves behind is named by a command that deletes it.
func TestPrintLeft(t *testing.T) {
	t.Parallel()
	c := plan.Default("/data", "/bin")
	c.Addons = fstest.MapFS{"metrics-server.yaml": {Data: []byte(`apiVersion: v1
kind: ServiceAccount
metadata: {name: metrics-server, namespace: kube-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: metrics-server, namespace: kube-system}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
`)}}
	old, err := c.WithAddon("metrics-server", true)
	if err != nil {
		t.Fatal(err)
	}
	const want = `The add-on metrics-server is off, and its objects are still there. To delete them:
  kubectl --context bonsai delete --ignore-not-found apiservice.apiregistration.k8s.io/v1beta1.metrics.k8s.io
  kubectl --context bonsai -n kube-system delete --ignore-not-found serviceaccount/metrics-server deployment.apps/metrics-server
`
	for _, tc := range []struct {
		old, now plan.Config
		want     string
	}{{old, c, want}, {old, old, ""}, {c, old, ""}, {c, c, ""}} {
		var out strings.Builder
		if err := PrintLeft(tc.now, tc.old, &out); err != nil || out.String() != tc.want {
			t.Errorf("%v\n%s", err, &out)
		}
	}
}
