package e2e

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// web is a Deployment of three pods that serve their name over HTTP, and its Service.
const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: httpd
        image: localhost/busybox:1.0
        command: [sh, -c, 'mkdir -p /tmp/www && hostname >/tmp/www/index.html && echo serving $VERSION && exec httpd -f -p 8080 -h /tmp/www']
        env: [{name: VERSION, value: one}]
        ports: [{containerPort: 8080, name: http}]
        readinessProbe: {httpGet: {path: /, port: http}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: http}]
`

// TestWalk is the first hour of a user, with our kubectl and with Debian's of 2021.
func TestWalk(t *testing.T) {
	for name, binary := range map[string]string{"ours": filepath.Join(cluster.bin, "kubectl"),
		"kubectl-1.20": filepath.Join(cluster.bin, "kubectl-1.20")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(binary); err != nil {
				t.Fatalf("%v (make e2e gets it)", err)
			}
			walk(t, newNamespace(t, binary, "walk-"+strings.ReplaceAll(name, ".", "-")))
		})
	}
}

func walk(t *testing.T, k kubectl) {
	if out := k.apply(web); !strings.Contains(out, "deployment.apps/web created") ||
		!strings.Contains(out, "service/web created") {
		t.Errorf("apply printed %q", out)
	}
	k.run("rollout", "status", "deployment/web", bound(80))
	checkPods(t, k, 3)
	reachService(t, k)

	pod := k.run("get", "pods", "-l", "app=web", "-o", "jsonpath={.items[0].metadata.name}")
	if out := k.run("logs", pod); out != "serving one" {
		t.Errorf("logs printed %q", out)
	}
	if out := k.run("exec", pod, "--", "hostname"); out != pod {
		t.Errorf("exec hostname printed %q, not %q", out, pod)
	}
	k.run("scale", "deployment/web", "--replicas=10")
	k.eventually("scale to 10", is("10"), "get", "deployment", "web", "-o", "jsonpath={.status.availableReplicas}")

	k.run("set", "env", "deployment/web", "VERSION=two")
	k.run("rollout", "status", "deployment/web", bound(80))
	// The last of the old pods may still be on its way out, and with it its log.
	k.eventually("ten pods log the new version", func(out string) bool {
		return strings.Count(out, "serving two") == 10 && len(strings.Split(out, "\n")) == 10
	}, "logs", "-l", "app=web", "--tail=1")
	k.run("rollout", "undo", "deployment/web")
	k.run("rollout", "status", "deployment/web", bound(80))
	if out := k.run("get", "deployment", "web", "-o",
		"jsonpath={.spec.template.spec.containers[0].env[0].value}"); out != "one" {
		t.Errorf("after the rollback VERSION is %q", out)
	}
	k.run("delete", "deployment,service", "web")
	k.eventually("the garbage collector takes the pods", contains("No resources found"), "get", "pods")
}

// checkPods checks that n pods run with distinct addresses of the pod network.
func checkPods(t *testing.T, k kubectl, n int) {
	t.Helper()
	network := netip.MustParsePrefix("10.244.0.0/16")
	lines := strings.Split(k.run("get", "pods", "-l", "app=web", "-o",
		`jsonpath={range .items[*]}{.status.phase} {.status.podIP}{"\n"}{end}`), "\n")
	seen := map[string]bool{}
	for _, line := range lines {
		phase, address, _ := strings.Cut(line, " ")
		ip, err := netip.ParseAddr(address)
		if phase != "Running" || err != nil || !network.Contains(ip) || seen[address] {
			t.Errorf("pod is %q at %q", phase, address)
		}
		seen[address] = true
	}
	if len(lines) != n {
		t.Errorf("%d pods, not %d", len(lines), n)
	}
}

// reachService asks the Service from a pod by address and by name, and from a node.
func reachService(t *testing.T, k kubectl) {
	t.Helper()
	address := k.run("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
	k.run("run", "client", "--image=localhost/busybox:1.0", "--restart=Never", "--command", "--", "sleep", "3600")
	k.run("wait", "--for=condition=Ready", "pod/client", bound(60))
	for _, host := range []string{address, "web", fmt.Sprintf("web.%s.svc.cluster.local", k.namespace)} {
		k.eventually("the Service answers "+host+" from a pod", contains("web-"), "exec", "client", "--", "timeout",
			"5", "wget", "-qO-", "http://"+host)
	}
	for _, node := range []string{"n1", "n2"} {
		out, err := cluster.command(usual, "bonsai", "--data-dir", cluster.data, "exec", node, "--", "/bin/busybox",
			"timeout", "5", "/bin/busybox", "wget", "-qO-", "http://"+address)
		if err != nil || !strings.Contains(out, "web-") {
			t.Errorf("the Service from node %s: %q, %v", node, out, err)
		}
	}
	k.run("delete", "pod", "client", "--grace-period=1")
}

// TestRunAttached: what a short command says comes out, and its exit code is kubectl's.
func TestRunAttached(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "attached")
	if out := k.run("run", "short", "-i", "--rm", "--quiet", "--restart=Never", "--image=localhost/busybox:1.0", "--",
		"echo", "hello"); !strings.Contains(out, "hello") {
		t.Errorf("printed %q", out)
	}
	out, err := k.try("run", "wrong", "-i", "--rm", "--quiet", "--restart=Never", "--image=localhost/busybox:1.0", "--",
		"sh", "-c", "exit 7")
	if err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("exit 7 became %v: %s", err, out)
	}
	if out := k.run("get", "pods", "-o", "name"); out != "" {
		t.Errorf("--rm left %s", out)
	}
}
