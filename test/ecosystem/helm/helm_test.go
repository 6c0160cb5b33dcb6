// Package helm drives a cluster with Helm, unchanged and with its defaults, as those do who install charts.
package helm

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// user has a cluster in $KUBECONFIG and a namespace in it.
type user struct {
	t         *testing.T
	bin       string
	namespace string
}

// newUser makes the namespace, which goes with the test, and with it whatever of the chart is left. It skips the test
// where there is no cluster to use: the variable is the one by which envtest is told so.
func newUser(t *testing.T, namespace string) user {
	t.Helper()
	if os.Getenv("USE_EXISTING_CLUSTER") != "true" {
		t.Skip("SKIPPED: no cluster is given; run `make ecosystem`")
	}
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	u := user{t: t, bin: bin, namespace: namespace}
	u.must("kubectl", "create", "namespace", namespace)
	t.Cleanup(func() { u.must("kubectl", "delete", "namespace", namespace, "--timeout=60s") })
	return u
}

// try runs helm or kubectl in the user's namespace and returns all that it says.
func (u user) try(command string, args ...string) (string, error) {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(u.bin, command),
		append([]string{"-n", u.namespace}, args...)...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %v: %w: %s", command, args, err, out)
	}
	return strings.TrimSpace(string(out)), err
}

func (u user) must(command string, args ...string) string {
	u.t.Helper()
	out, err := u.try(command, args...)
	if err != nil {
		u.t.Fatal(err)
	}
	return out
}

// fails runs helm, which must fail with words in its message.
func (u user) fails(words string, args ...string) {
	u.t.Helper()
	if out, err := u.try("helm", args...); err == nil || !strings.Contains(out, words) {
		u.t.Errorf("helm %v: %q is not in %s (%v)", args, words, out, err)
	}
}

// has compares what kubectl gets of an object with want.
func (u user) has(want, object, path string) {
	u.t.Helper()
	if out := u.must("kubectl", "get", object, "-o", "jsonpath="+path); out != want {
		u.t.Errorf("%s of %s: %q, want %q", path, object, out, want)
	}
}

// history compares the states of a release's revisions, oldest first.
func (u user) history(release string, want ...string) {
	u.t.Helper()
	var revisions []struct {
		Revision int
		Status   string
	}
	if err := json.Unmarshal([]byte(u.must("helm", "history", release, "-o", "json")), &revisions); err != nil {
		u.t.Fatal(err)
	}
	var got []string
	for _, r := range revisions {
		got = append(got, r.Status)
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		u.t.Errorf("history of %s: %v, want %v", release, got, want)
	}
}

// TestLife installs a chart with a custom resource definition, custom resources, hooks and a test, upgrades it, rolls
// it back and uninstalls it.
func TestLife(t *testing.T) {
	u := newUser(t, "helm-life")
	// Helm never deletes what is in crds/
	t.Cleanup(func() { u.must("kubectl", "delete", "crd", "shelves.shop.example.com") })
	if out := u.must("helm", "install", "shop", "testdata/shop", "--wait", "--timeout",
		"90s"); !strings.Contains(out, "The shop says hello.") {
		t.Errorf("install: %s", out)
	}
	u.has("1/1", "deployment/shop", "{.status.readyReplicas}/{.status.replicas}")
	u.has("2 oak", "shelf/shop-upper", "{.spec.boards} {.spec.wood}")
	u.has("1", "configmap/shop-installed", "{.data.revision}")
	u.has("helm Apply", "deployment/shop",
		"{.metadata.managedFields[0].manager} {.metadata.managedFields[0].operation}")
	if out := u.must("helm", "list", "--output", "json"); !strings.Contains(out, `"name":"shop"`) ||
		!strings.Contains(out, `"status":"deployed"`) {
		t.Errorf("list: %s", out)
	}
	if out := u.must("helm", "status", "shop"); !strings.Contains(out, "==> v1/Shelf") ||
		!strings.Contains(out, "1/1") {
		t.Errorf("status: %s", out)
	}
	if out := u.must("helm", "test", "shop", "--logs", "--timeout",
		"90s"); !strings.Contains(out, "Phase:          Succeeded") || !strings.HasSuffix(out, "hello") {
		t.Errorf("test: %s", out)
	}

	u.must("helm", "upgrade", "shop", "testdata/shop", "--set", "greeting=bye,replicas=2,shelves.lower=3", "--wait",
		"--timeout", "90s")
	u.has("2/2", "deployment/shop", "{.status.readyReplicas}/{.status.replicas}")
	u.has("3", "shelf/shop-lower", "{.spec.boards}")
	u.has("2", "configmap/shop-installed", "{.data.revision}")
	if out := u.must("helm", "get", "values", "shop", "-o",
		"json"); out != `{"greeting":"bye","replicas":2,"shelves":{"lower":3}}` {
		t.Errorf("values: %s", out)
	}

	u.must("helm", "rollback", "shop", "1", "--wait", "--timeout", "90s")
	u.has("1", "deployment/shop", "{.spec.replicas}")
	u.has("hello", "configmap/shop-pages", `{.data.index\.html}`)
	u.has("shelf.shop.example.com/shop-upper", "shelves",
		"{range .items[*]}shelf.shop.example.com/{.metadata.name}{end}")
	u.history("shop", "superseded", "superseded", "deployed")

	u.must("helm", "uninstall", "shop", "--wait", "--timeout", "90s")
	if out := u.must("kubectl", "get", "deployments,services,shelves,secrets", "-o", "name"); out != "" {
		t.Errorf("after uninstall: %s", out)
	}
}

// TestFailures makes installations and upgrades fail: in validation, in a hook, in waiting, and on another's field.
func TestFailures(t *testing.T) {
	u := newUser(t, "helm-failures")
	t.Cleanup(func() { u.must("kubectl", "delete", "crd", "shelves.shop.example.com") })
	const chart = "testdata/shop"
	u.fails("Shelf.shop.example.com \"shop-upper\" is invalid: spec.boards: Invalid value: 99: spec.boards in body should be less than or equal to 10",
		"install", "shop", chart, "--set", "shelves.upper=99", "--rollback-on-failure", "--timeout", "90s")
	if out := u.must("helm", "list", "--short"); out != "" {
		t.Errorf("an installation that failed and was rolled back: %s", out)
	}
	u.must("helm", "install", "shop", chart, "--wait", "--timeout", "90s")
	u.fails("pre-upgrade hooks failed", "upgrade", "shop", chart, "--set", "hookCommand={sh,-c,exit 1}", "--timeout",
		"90s")
	u.fails("has been rolled back due to rollback-on-failure being set", "upgrade", "shop", chart,
		"--set", "greeting=broken,command={sh,-c,exit 1}", "--rollback-on-failure", "--timeout", "5s")
	u.history("shop", "superseded", "failed", "failed", "deployed")
	u.has("hello", "configmap/shop-pages", `{.data.index\.html}`)

	u.must("kubectl", "scale", "deployment", "shop", "--replicas=2")
	u.fails(`Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using apps/v1: .spec.replicas`,
		"upgrade", "shop", chart, "--set", "replicas=3", "--timeout", "90s")
	u.must("helm", "upgrade", "shop", chart, "--set", "replicas=3", "--force-conflicts", "--wait", "--timeout", "90s")
	u.has("3", "deployment/shop", "{.status.readyReplicas}")
	u.must("helm", "upgrade", "shop", chart, "--server-side=false", "--set", "replicas=1", "--wait", "--timeout", "90s")
	u.has("1", "deployment/shop", "{.spec.replicas}")
	u.must("helm", "uninstall", "shop", "--wait", "--timeout", "90s")
}
