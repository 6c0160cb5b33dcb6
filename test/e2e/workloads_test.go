package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestDaemonSet: a pod on each node, the cordoned one too; an update and its undoing.
func TestDaemonSet(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "daemons")
	k.apply(workload("DaemonSet", "agent", ""))
	k.rolledOut("daemonset/agent", "daemon set \"agent\" successfully rolled out")
	nodes := func() string {
		return k.run("get", "pods", "-l", "app=agent", "--sort-by=.spec.nodeName", "-o",
			"jsonpath={range .items[*]}{.spec.nodeName}={.spec.containers[0].env[0].value} {end}")
	}
	if got := nodes(); got != "n1=1 n2=1" {
		t.Errorf("daemons are on %q", got)
	}
	k.run("set", "env", "daemonset/agent", "VERSION=2")
	k.rolledOut("daemonset/agent", "successfully rolled out")
	k.eventually("the old daemons gone", is("n1=2 n2=2"), "get", "pods", "-l", "app=agent", "--sort-by=.spec.nodeName",
		"-o", "jsonpath={range .items[*]}{.spec.nodeName}={.spec.containers[0].env[0].value} {end}")
	k.run("rollout", "undo", "daemonset/agent")
	k.rolledOut("daemonset/agent", "successfully rolled out")
	if got := strings.Fields(
		k.run("rollout", "history", "daemonset/agent")); strings.Join(got, " ") !=
		"daemonset.apps/agent REVISION CHANGE-CAUSE 2 <none> 3 <none>" {
		t.Errorf("history: %q", got)
	}
}

// TestStatefulSet: pods with names that last, found by DNS; a new pod in the place of one that was deleted; scaling
// from the end.
func TestStatefulSet(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "stateful")
	k.apply("apiVersion: v1\nkind: Service\nmetadata: {name: db}\nspec: {clusterIP: None, selector: {app: db}, ports: [{port: 8080}]}\n---" +
		workload("StatefulSet", "db", "serviceName: db\n  replicas: 2"))
	k.rolledOut("statefulset/db", "partitioned roll out complete: 2 new pods")
	// A name that was not known is remembered for some seconds.
	k.eventually("the other pod's answer by its name", is("db-1"), "exec", "db-0", "--", "wget", "-qO-",
		"http://db-1.db:8080/")
	before := k.run("get", "pod", "db-0", "-o", "jsonpath={.metadata.uid}")
	k.run("delete", "pod", "db-0")
	k.eventually("another db-0", func(uid string) bool {
		return uid != "" && uid != before
	}, "get", "pod", "db-0", "--ignore-not-found", "-o", "jsonpath={.metadata.uid}")
	k.run("scale", "statefulset/db", "--replicas=3")
	k.rolledOut("statefulset/db", "partitioned roll out complete: 3 new pods")
	k.run("scale", "statefulset/db", "--replicas=1")
	k.eventually("db-0 alone", is("db-0"), "get", "pods", "-l", "app=db", "-o", "jsonpath={.items[*].metadata.name}")
}

// TestQuota: what a quota does not leave room for is refused, and what is deleted makes room again.
func TestQuota(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "quota")
	k.run("create", "quota", "two", "--hard=configmaps=3") // one is the root CA's
	k.eventually("the quota counted", is("1"), "get", "quota", "two", "-o", "jsonpath={.status.used.configmaps}")
	k.run("create", "configmap", "a")
	k.run("create", "configmap", "b")
	out, err := k.try("create", "configmap", "c")
	if want := "exceeded quota: two, requested: configmaps=1, used: configmaps=3, limited: configmaps=3"; err == nil ||
		!strings.Contains(out, want) {
		t.Errorf("the third: %s, %v", out, err)
	}
	k.run("delete", "configmap", "a")
	k.eventually("room again", is("2"), "get", "quota", "two", "-o", "jsonpath={.status.used.configmaps}")
	k.run("create", "configmap", "c")
}

// workload is a DaemonSet or StatefulSet whose pods serve their names; more is added to its spec.
func workload(kind, name, more string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: %s
metadata: {name: %s}
spec:
  %s
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: c
        image: localhost/busybox:1.0
        command: [sh, -c, %q]
        env: [{name: VERSION, value: "1"}]
        readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
`, kind, name, more, name, name, serve)
}

// rolledOut waits for the rollout and what is said at its end.
func (k kubectl) rolledOut(name, want string) {
	k.t.Helper()
	if out := k.run("rollout", "status", name, bound(90)); !strings.Contains(out, want) {
		k.t.Errorf("rollout status of %s: %s", name, out)
	}
}
