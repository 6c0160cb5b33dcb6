package discovery_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"bonsai/api/resources/rows"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/discovery"
)

// TestUpstream: everything that a kube-apiserver v1.37.2 serves with its default flags is served here too, with the
// same verbs, short names and categories, in the same order, and nothing else. The files in testdata are its answers.
func TestUpstream(t *testing.T) {
	t.Parallel()
	d := discovery.New(discovery.Config{Catalog: assembletest.Catalog(t, rows.All()), ServerAddress: "192.0.2.1:6443"})
	for _, root := range []string{"api", "apis"} {
		raw, err := os.ReadFile("testdata/" + root + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var want apidiscoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		got := decode[apidiscoveryv2.APIGroupDiscoveryList](t, get(t, d, "/"+root, v2))
		if len(want.Items) == 0 {
			t.Fatalf("%s.json has no groups", root)
		}
		if diff := cmp.Diff(want.Items, got.Items); diff != "" {
			t.Errorf("/%s (- upstream, + here):\n%s", root, diff)
		}
	}
}
