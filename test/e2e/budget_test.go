package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDisruptionBudget: an eviction is refused while the budget has nothing to give, and goes through when it has.
func TestDisruptionBudget(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "budget")
	k.apply(workload("Deployment", "web", "replicas: 2") + `---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
`)
	allowed := []string{"get", "pdb", "web", "-o", "jsonpath={.status.currentHealthy} {.status.disruptionsAllowed}"}
	k.eventually("two healthy pods", is("2 0"), allowed...)
	pods := strings.Fields(k.run("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}"))
	evict := func(pod string) (string, error) {
		path := filepath.Join(t.TempDir(), "eviction.yaml")
		body := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":"budget"}}`,
			pod)
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		return k.try("create", "--raw", "/api/v1/namespaces/budget/pods/"+pod+"/eviction", "-f", path)
	}
	const refused = "Cannot evict pod as it would violate the pod's disruption budget."
	if out, err := evict(pods[0]); err == nil || !strings.Contains(out, refused) {
		t.Errorf("with nothing to give: %s, %v", out, err)
	}
	k.run("patch", "pdb", "web", "-p", `{"spec":{"minAvailable":1}}`)
	k.eventually("one to give", is("2 1"), allowed...)
	if out, err := evict(pods[0]); err != nil {
		t.Errorf("with one to give: %s, %v", out, err)
	}
	k.run("wait", "--for=delete", "pod/"+pods[0], bound(80))
	k.eventually("another in its place", is("2 1"), allowed...)
	if out := k.run("get", "pods", "-l", "app=web", "-o", "name"); !strings.Contains(out, pods[1]) {
		t.Errorf("%s went, too: %s", pods[1], out)
	}
}
