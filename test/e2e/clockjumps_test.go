package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const clockSettings = `apiVersion: bonsai.io/v1alpha1
kind: Cluster
name: clock
nodes: [{}, {}]
networking: {egress: false}
componentFlags:
  kube-controller-manager: {leader-elect: "true"}
  kube-scheduler: {leader-elect: "true"}
`

const clockManifest = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "localhost/busybox:1.0", command: [sh, -c, "httpd -f -p 8080 -h /etc"], readinessProbe: {httpGet: {port: 8080, path: /hostname}, periodSeconds: 1}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: minutely}
spec:
  schedule: "* * * * *"
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: c, image: "localhost/busybox:1.0", command: ["true"]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  serviceAccountName: client
  containers:
  - name: c
    image: localhost/busybox:1.0
    command: [sleep, "1000000"]
    volumeMounts: [{name: short, mountPath: /short}]
  volumes:
  - name: short
    projected: {sources: [{serviceAccountToken: {path: token, expirationSeconds: 600}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: mortal, labels: {dies: often}}
spec:
  containers:
  - {name: c, image: "localhost/busybox:1.0", command: [sh, -c, "until [ -e /tmp/die ]; do sleep 0.2; done"]}
`

// TestClockJumps: the clock of all programs of a running cluster is put forward by an hour, back to where it was, and
// back by an hour more. No node is lost and no pod replaced or restarted by any of it; new pods, restarts, leader
// election, leases and the tokens of pods go on.
func TestClockJumps(t *testing.T) {
	isLong(t)
	bin := jumpingBuild(t)
	dir := t.TempDir()
	e := env{bin: bin, data: filepath.Join(dir, "data"), home: dir, kubeconfig: filepath.Join(dir, "config")}
	t.Cleanup(func() { e.command(2*time.Minute, "bonsai", "--data-dir", e.data, "down") })
	config := filepath.Join(dir, "cluster.yaml")
	if err := os.WriteFile(config, []byte(clockSettings), 0o600); err != nil {
		t.Fatal(err)
	}
	e.must(t, "bonsai", "--data-dir", e.data, "up", "--config", config)
	k := kubectl{t: t, binary: filepath.Join(bin, "kubectl"), namespace: "default", kubeconfig: e.kubeconfig}
	k.run("create", "serviceaccount", "client")
	k.apply(clockManifest)
	k.run("rollout", "status", "deployment/web", bound(80))
	k.ready("client")
	k.ready("mortal")
	server := k.run("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}")
	// tokenTaken waits until the API server knows the bearer of the token that a command prints.
	tokenTaken := func(command ...string) {
		t.Helper()
		waitFor(t, fmt.Sprintf("the token of %v is taken", command), func() bool {
			token, err := k.try(command...)
			if err != nil {
				return false
			}
			who, err := k.try("--kubeconfig", os.DevNull, "--server", server, "--insecure-skip-tls-verify", "--token",
				token, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}")
			return err == nil && who == "system:serviceaccount:default:client"
		})
	}
	usual := []string{"exec", "client", "--", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token"}
	short := []string{"exec", "client", "--", "cat", "/short/token"}
	tokenTaken(usual...)
	tokenTaken(short...)

	lives := func() string {
		return k.run("get", "nodes", "-o",
			`jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.conditions[?(@.type=="Ready")]['status','lastTransitionTime']}{"\n"}{end}`) +
			k.run("get", "pods", "-A", "-l", "!job-name,!dies", "--sort-by=.metadata.name", "-o",
				`jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}`)
	}
	before := lives()
	for i, ahead := range []time.Duration{time.Hour, 0, -time.Hour} {
		setClock(t, bin, ahead)
		t.Logf("the clock is ahead by %s", ahead)
		now := time.Now().Add(ahead)
		renewed := func(namespace, lease string) {
			t.Helper()
			for range 2 { // the second renewal is by who saw the first
				var last string
				k.eventually(lease+" is renewed", func(out string) bool {
					at, err := time.Parse(time.RFC3339Nano, out)
					near := err == nil && at.After(now.Add(-time.Minute)) && at.Before(now.Add(5*time.Minute))
					defer func() { last = out }()
					return near && last != "" && out != last
				}, "-n", namespace, "get", "lease", lease, "-o", "jsonpath={.spec.renewTime}")
			}
		}
		for _, node := range []string{"n1", "n2"} {
			renewed("kube-node-lease", node)
		}
		for _, leader := range []string{"kube-controller-manager", "kube-scheduler"} {
			renewed("kube-system", leader)
		}
		job := fmt.Sprintf("job-%d", i)
		k.run("create", "job", job, "--image=localhost/busybox:1.0", "--", "true")
		k.run("wait", "job/"+job, "--for=condition=complete", bound(80))
		k.run("exec", "mortal", "--", "touch", "/tmp/die")
		k.eventually("the container that ends is started again", func(out string) bool {
			return out == fmt.Sprintf("%d true", i+1)
		},
			"get", "pod", "mortal", "-o",
			"jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}")
		tokenTaken(usual...)
		tokenTaken(short...)
		tokenTaken("create", "token", "client")
		k.run("-n", "kube-system", "rollout", "status", "deployment/coredns", bound(20))
		if after := lives(); after != before {
			t.Errorf("with the clock ahead by %s, before:\n%s\nafter:\n%s", ahead, before, after)
		}
		if out, err := e.command(time.Minute, "bonsai", "--data-dir", e.data, "status"); err != nil {
			t.Errorf("status: %s, %v", out, err)
		}
	}
	t.Log(k.run("get", "jobs"))
	e.must(t, "bonsai", "--data-dir", e.data, "down")
}
