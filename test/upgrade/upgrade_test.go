// Package upgrade takes a cluster of the release before ours to ours: while it runs, over a stop, and from a snapshot.
package upgrade

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bonsai/api/kubeversion"
)

var (
	previous = flag.String("previous", "",
		"directory with the binaries of a Bonsai that follows the Kubernetes before ours; without it the test is skipped")
	ours = flag.String("bin", "../../bin", "directory with our binaries")
)

// patience bounds each command.
const patience = 4 * time.Minute

// installed is a directory of binaries and the cluster that they run.
type installed struct {
	t                    *testing.T
	bin, data, home, dir string
}

// TestUpgrade needs root, and no other cluster beside it.
func TestUpgrade(t *testing.T) {
	if *previous == "" {
		t.Skip("SKIPPED: run `make upgrade-test PREVIOUS=directory` with the binaries of the release before")
	}
	dir := t.TempDir()
	c := installed{t: t, dir: dir, bin: filepath.Join(dir, "bin"), data: filepath.Join(dir, "data"),
		home: filepath.Join(dir, "home")}
	c.install(*previous)
	t.Cleanup(func() { c.ask("bonsai", "down", "--data-dir", c.data) })
	c.run("bonsai", "up", "--data-dir", c.data, "--nodes", "2", "--egress=false")
	c.run("kubectl", "apply", "-f", "testdata/shop.yaml")
	for _, workload := range []string{"deployment/web", "statefulset/db", "daemonset/agent"} {
		c.run("kubectl", "-n", "shop", "rollout", "status", workload, "--timeout=3m")
	}
	c.run("kubectl", "-n", "shop", "wait", "--for=condition=Complete", "job/once", "--timeout=2m")
	c.run("kubectl", "apply", "-f", "testdata/order.yaml") // of the kind that the shop defines
	c.run("bonsai", "snapshot", "save", "before", "--data-dir", c.data)
	c.settled()
	if version := c.run("kubectl", "version"); !strings.Contains(version, "Server Version: v"+kubeversion.Previous) {
		t.Fatalf("%s does not follow %s:\n%s", *previous, kubeversion.Previous, version)
	}
	objects, containers := c.objects(), c.containers()

	c.install(*ours)
	t.Log(c.run("bonsai", "restart", "--data-dir", c.data))
	if now := c.containers(); now != containers {
		t.Errorf("containers before:\n%s\nafter the restart of all components:\n%s", containers, now)
	}
	c.upgraded(objects)

	c.run("bonsai", "stop", "--data-dir", c.data)
	c.run("bonsai", "start", "--data-dir", c.data)
	c.settled()
	c.upgraded(objects)

	c.run("kubectl", "delete", "namespace", "shop")
	c.run("bonsai", "snapshot", "restore", "before", "--data-dir", c.data)
	c.settled()
	c.upgraded(objects)
}

// install puts the binaries of a directory in place of those that are there: each file is another one afterwards, so
// processes keep what they run.
func (c installed) install(from string) {
	c.t.Helper()
	c.command("cp", "-a", "--reflink=auto", "--remove-destination", from+"/.", c.bin)
}

// settled waits until all pods of the shop are Ready again.
func (c installed) settled() {
	c.t.Helper()
	c.run("kubectl", "-n", "shop", "wait", "--for=condition=Ready", "pod", "-l", "shop", "--timeout=3m")
}

// kinds are the kinds whose objects outlive an upgrade; the others come and go with pods and leases.
const kinds = "deployments,statefulsets,daemonsets,replicasets,jobs,cronjobs,services,configmaps,secrets," +
	"serviceaccounts,persistentvolumeclaims,roles,rolebindings,networkpolicies,poddisruptionbudgets," +
	"horizontalpodautoscalers,ingresses,orders.shop.example.com"

// objects lists what is in the shop, with UIDs and the versions of what clients wrote.
func (c installed) objects() string {
	c.t.Helper()
	return c.run("kubectl", "-n", "shop", "get", kinds, "-o",
		`jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid}{"\n"}{end}`)
}

// containers lists the containers that run, with how often each was started.
func (c installed) containers() string {
	c.t.Helper()
	out := strings.Fields(c.run("kubectl", "get", "pods", "-A", "-l", "shop", "-o", `jsonpath={range .items[*]}`+
		`{.metadata.name}:{.status.containerStatuses[0].containerID}:{.status.containerStatuses[0].restartCount}{"\n"}{end}`))
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// upgraded checks that the cluster is of our release, has the objects of before, and works.
func (c installed) upgraded(objects string) {
	t := c.t
	t.Helper()
	if version := c.run("kubectl", "version"); !strings.Contains(version, "Server Version: "+kubeversion.Release) {
		t.Errorf("the API server after the upgrade:\n%s", version)
	}
	kubelets := c.run("kubectl", "get", "nodes", "-o", "jsonpath={.items[*].status.nodeInfo.kubeletVersion}")
	if want := kubeversion.Git + " " + kubeversion.Git; kubelets != want {
		t.Errorf("the kubelets are %s, want %s", kubelets, want)
	}
	if now := c.objects(); now != objects {
		t.Errorf("objects before:\n%s\nafter:\n%s", objects, now)
	}
	if log := c.run("kubectl", "-n", "shop", "exec", "db-0", "--", "cat", "/data/log"); !strings.HasPrefix(log, "started") {
		t.Errorf("the claim has %q", log)
	}
	if page := c.run("kubectl", "-n", "shop", "exec", "db-0", "--", "timeout", "20", "wget", "-qO-", "http://web"); !regexp.
		MustCompile(`^web-`).MatchString(page) {
		t.Errorf("the Service answers %q", page)
	}
	// what is new is made, changed and removed, and what is old, too
	c.run("kubectl", "-n", "shop", "scale", "deployment/web", "--replicas=3")
	c.run("kubectl", "-n", "shop", "rollout", "status", "deployment/web", "--timeout=3m")
	c.run("kubectl", "-n", "shop", "scale", "deployment/web", "--replicas=2")
	c.run("kubectl", "-n", "shop", "rollout", "status", "deployment/web", "--timeout=3m")
	c.run("kubectl", "-n", "shop", "patch", "order", "first", "--type=merge", "-p", `{"spec":{"pieces":3}}`)
	c.run("kubectl", "-n", "shop", "patch", "order", "first", "--type=merge", "-p", `{"spec":{"pieces":2}}`)
	c.run("kubectl", "get", "clustertrustbundles")
}

// run runs a program of the installation, and fails the test if it fails.
func (c installed) run(name string, args ...string) string {
	c.t.Helper()
	out, err := c.ask(name, args...)
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

// ask runs a program of the installation and returns its output, which has its errors if it fails.
func (c installed) ask(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, name), args...)
	cmd.Env = append(os.Environ(), "HOME="+c.home, "KUBECONFIG="+filepath.Join(c.home, ".kube", "config"))
	out, err := cmd.Output()
	if failed, ok := err.(*exec.ExitError); ok { //nolint:errorlint // Output returns it as it is
		return string(out) + string(failed.Stderr), err
	}
	return string(out), err
}

// command runs a program of the machine.
func (c installed) command(name string, args ...string) {
	c.t.Helper()
	if out, err := exec.CommandContext(c.t.Context(), name, args...).CombinedOutput(); err != nil {
		c.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
