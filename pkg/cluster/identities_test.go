package cluster

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/deploy/addons"
	"bonsai/pkg/cluster/addon"
	"bonsai/pkg/cluster/pki"
	"bonsai/pkg/cluster/plan"
)

// TestAddonsKnowIdentities: whom the add-ons give rights has a certificate for that name.
func TestAddonsKnowIdentities(t *testing.T) {
	t.Parallel()
	c := plan.Default("/data", "/bin")
	c.Nodes, c.Addons = plan.NodesUpTo(1), addons.Files
	var users []string
	for _, row := range pki.Certificates(c) {
		users = append(users, row.User)
	}
	objects, err := addon.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, object := range objects {
		subjects, _, err := unstructured.NestedSlice(object.Object, "subjects")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range subjects {
			subject := s.(map[string]any)
			if subject["kind"] != "User" {
				continue
			}
			name := subject["name"].(string)
			if found = append(found, name); !slices.Contains(users, name) {
				t.Errorf("%s is for %s, who has no certificate", object.GetName(), name)
			}
		}
	}
	if !slices.Contains(found, "bonsai:network") || !slices.Contains(found, "system:kube-proxy") {
		t.Errorf("rights are given to %v only", found)
	}
}
