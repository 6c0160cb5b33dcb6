package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestChangeWhileRunning: labels, taints, published ports and add-ons change while the cluster runs, and no process
// ends for it; what others set on a node stays. What cannot be published changes nothing.
func TestChangeWhileRunning(t *testing.T) {
	dir := t.TempDir()
	e := env{bin: cluster.bin, data: filepath.Join(dir, "change"), home: dir, kubeconfig: filepath.Join(dir, "config")}
	t.Cleanup(func() { e.command(2*time.Minute, "bonsai", "--data-dir", e.data, "down") })
	up := func(file string, more ...string) (string, error) {
		path := filepath.Join(dir, "cluster.yaml")
		if err := os.WriteFile(path,
			[]byte("apiVersion: bonsai.io/v1alpha1\nkind: Cluster\nname: change\nnetworking: {egress: false}\n"+file),
			0o600); err != nil {
			t.Fatal(err)
		}
		return e.command(3*time.Minute, "bonsai",
			append([]string{"--data-dir", e.data, "up", "--config", path}, more...)...)
	}
	must := func(out string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(out, err)
		}
		return out
	}
	node := func() string {
		labels := must(e.command(time.Minute, "kubectl", "get", "node", "n1", "-o",
			"jsonpath={.metadata.labels.a} {.metadata.labels.b} {.metadata.labels.mine}"))
		taints := strings.Fields(
			must(e.command(time.Minute, "kubectl", "get", "node", "n1", "-o",
				"jsonpath={range .spec.taints[*]}{.key}={.value}:{.effect} {end}")))
		slices.Sort(taints)
		return labels + " " + strings.Join(taints, " ")
	}
	status := func() string { return pids(must(e.command(time.Minute, "bonsai", "--data-dir", e.data, "status"))) }
	answers := func(port string) bool {
		client := http.Client{Timeout: here(5 * time.Second), Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://127.0.0.1:" + port)
		if err == nil {
			resp.Body.Close()
		}
		return err == nil
	}
	must(up("nodes: [{labels: {a: '1', b: '1'}, taints: [{key: old, value: x, effect: PreferNoSchedule}]}]\nportMappings: [{hostPort: 28080, nodePort: 30081}]\n"))
	must(e.command(time.Minute, "kubectl", "label", "node", "n1", "mine=1"))
	must(e.command(time.Minute, "kubectl", "taint", "node", "n1", "theirs=1:PreferNoSchedule"))
	must(e.command(time.Minute, "kubectl", "create", "deployment", "web", "--image=localhost/busybox:1.0", "--",
		"httpd", "-f", "-p", "8080", "-h", "/etc"))
	must(e.command(time.Minute, "kubectl", "create", "service", "nodeport", "web", "--tcp=80:8080",
		"--node-port=30081"))
	must(e.command(2*time.Minute, "kubectl", "rollout", "status", "deployment/web"))
	before := status()
	if got, want := node(), "1 1 1 old=x:PreferNoSchedule theirs=1:PreferNoSchedule"; got != want {
		t.Errorf("at first: %q, want %q", got, want)
	}

	const changed = "nodes: [{labels: {a: '2'}, taints: [{key: new, value: y, effect: NoSchedule}]}]\nportMappings: [{hostPort: 28081, nodePort: 30081}]\naddons: {local-path: false}\n"
	out := must(up(changed))
	for _, want := range []string{"labels of n1: a=1 b=1 now, a=2 wanted", "add-on local-path: on now, off wanted",
		" delete --ignore-not-found storageclass.storage.k8s.io/standard"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if got, want := node(), "2  1 new=y:NoSchedule theirs=1:PreferNoSchedule"; got != want {
		t.Errorf("changed: %q, want %q", got, want)
	}
	if answers("28080") || !answers("28081") {
		t.Errorf("the port of before answers: %v, the new one: %v", answers("28080"), answers("28081"))
	}
	if out, err := up(changed, "--port", "28082:30081", "--port", "28083:30081", "--api-port", "28084"); err == nil ||
		!strings.Contains(out, "runs with other settings, and nothing changed") {
		t.Errorf("what takes a stop: %s, %v", out, err)
	}
	if !answers("28081") || answers("28082") {
		t.Error("what was refused has changed the ports")
	}
	if after := status(); after != before {
		t.Errorf("processes before:\n%s\nafter:\n%s", before, after)
	}
	if out := must(up(changed)); !strings.Contains(out, "already up: nothing changed") {
		t.Errorf("once more: %s", out)
	}
}
