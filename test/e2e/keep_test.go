package e2e

import (
	"maps"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStopStart: stop leaves nothing on the machine but the data and the context; start goes on with the same objects
// on the same nodes, addresses and ports, those of the pods' new sandboxes among them.
func TestStopStart(t *testing.T) {
	k := newNamespace(t, "kubectl", "stop-start")
	k.apply(web)
	k.run("rollout", "status", "deployment/web", bound(80))
	state := []string{"get", "pods,services,nodes", "-o",
		`jsonpath={range .items[*]}{.metadata.uid} {.spec.nodeName} {.spec.clusterIP} {.spec.podCIDR} {.status.addresses[0].address}{"\n"}{end}`}
	before := k.run(state...)
	addresses := k.podAddresses()
	kubeconfig, err := os.ReadFile(cluster.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cluster.bonsai(t, "stop")
	if left, err := leftovers(); err != nil || len(left) > 0 {
		t.Errorf("stop left behind: %v, %v", left, err)
	}
	if out := cluster.bonsai(t, "list"); !strings.Contains(out, "stopped") {
		t.Errorf("list: %s", out)
	}
	cluster.bonsai(t, "start")
	if after := k.run(state...); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if after, err := os.ReadFile(cluster.kubeconfig); err != nil || string(after) != string(kubeconfig) {
		t.Errorf("the kubeconfig is another: %v\n%s", err, after)
	}
	k.eventually("the pods run again", func(out string) bool { return strings.Count(out, "true") == 3 },
		"get", "pods", "-o", "jsonpath={.items[*].status.containerStatuses[0].ready}")
	if after := k.podAddresses(); !maps.Equal(after, addresses) {
		t.Errorf("addresses of pods before: %v, after: %v", addresses, after)
	}
}

// podAddresses are what the pods of the namespace have on their interface, by the pods' names; the API says the same.
func (k kubectl) podAddresses() map[string]string {
	k.t.Helper()
	all := map[string]string{}
	for _, name := range strings.Fields(k.run("get", "pods", "-o", "jsonpath={.items[*].metadata.name}")) {
		all[name] = strings.TrimSpace(k.run("exec", name, "--", "hostname", "-i"))
		if said := k.run("get", "pod", name, "-o", "jsonpath={.status.podIP}"); said != all[name] {
			k.t.Errorf("%s has %s and the API says %s", name, all[name], said)
		}
	}
	return all
}

// TestPause: a paused cluster uses no CPU and says that it is paused; after it nothing was given up, though every node
// was silent for longer than the controller manager waits for one (40 s).
func TestPause(t *testing.T) {
	k := newNamespace(t, "kubectl", "pause")
	k.apply(web)
	k.run("rollout", "status", "deployment/web", bound(80))
	state := []string{"get", "pods,nodes", "-o",
		`jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[0].containerID} {.status.conditions[?(@.type=="Ready")].status} {.status.conditions[?(@.type=="Ready")].lastTransitionTime} {.spec.taints}{"\n"}{end}`}
	before := k.run(state...)
	began := time.Now()
	cluster.bonsai(t, "pause")
	t.Cleanup(func() { cluster.bonsai(t, "resume") })
	if took := time.Since(began); took > here(2*time.Second) {
		t.Errorf("pause took %s", took)
	}
	const longer = 42 * time.Second
	for _, command := range []string{"status", "exec n1 -- true"} {
		if out, err := cluster.command(usual, "bonsai",
			append([]string{"--data-dir", cluster.data}, strings.Fields(command)...)...); err == nil ||
			!strings.Contains(out, "is paused (bonsai resume)") {
			t.Errorf("%s: %s, %v", command, out, err)
		}
	}
	waitFor(t, "a pause that is longer than nodes may be silent", func() bool { return time.Since(began) > longer })
	cluster.bonsai(t, "resume")
	if after := k.run(state...); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	k.run("scale", "deployment", "web", "--replicas=4")
	k.run("rollout", "status", "deployment/web", bound(80))
}

// TestSnapshot: a snapshot of a running cluster brings back its objects and the data of its claims.
func TestSnapshot(t *testing.T) {
	k := newNamespace(t, "kubectl", "snapshot")
	k.apply(database)
	k.rolledOut("statefulset/db", "partitioned roll out complete: 2 new pods")
	k.run("create", "configmap", "before")
	cluster.bonsai(t, "snapshot", "save", "e2e")
	t.Cleanup(func() { cluster.bonsai(t, "snapshot", "rm", "e2e") })
	if out := cluster.bonsai(t, "snapshot", "list"); !strings.Contains(out, "e2e") {
		t.Errorf("list: %s", out)
	}
	k.run("exec", "db-1", "--", "sh", "-c", "echo later >>/data/log")
	k.run("delete", "configmap", "before")
	k.run("create", "configmap", "after")
	cluster.bonsai(t, "snapshot", "restore", "e2e")
	if out := k.run("get", "configmaps", "-o", "name"); !strings.Contains(out, "configmap/before") ||
		strings.Contains(out, "configmap/after") {
		t.Errorf("config maps: %s", out)
	}
	k.eventually("the claim's data", is("started\nstarted"), "exec", "db-1", "--", "cat", "/data/log")
}

// TestAddNode: a node is added to the running cluster and runs pods; removed, it is gone from the API and from the
// machine, its pods too, and no other node was touched. The API of traces is reached by the nodes that there are.
func TestAddNode(t *testing.T) {
	k := newNamespace(t, "kubectl", "add-node")
	before := pidOf(t, "host", "node-n1")
	leadsBy := func(nodes string) {
		t.Helper()
		if out := k.run("get", "endpointslice", "traces", "-n", "kube-system", "-o",
			"jsonpath={.endpoints[*].nodeName}"); out != nodes {
			t.Errorf("the API of traces is reached by %s, not %s", out, nodes)
		}
	}
	gone := func() {
		t.Helper()
		if out := k.run("get", "nodes", "-o", "name"); out != "node/n1\nnode/n2" {
			t.Errorf("nodes: %s", out)
		}
		if _, err := os.Stat(cluster.data + "/nodes/n3"); !os.IsNotExist(err) {
			t.Errorf("its directory is left: %v", err)
		}
		leadsBy("n1 n2")
	}
	if out, err := cluster.command(usual, "bonsai", "--data-dir", cluster.data, "node", "add",
		"--wait=100ms"); err == nil || !strings.Contains(out, "bonsai: error: ") {
		t.Errorf("ready within 100 ms? %s, %v", out, err)
	}
	gone() // no half of it
	cluster.bonsai(t, "node", "add", "--labels", "disktype=ssd")
	leadsBy("n1 n2 n3")
	k.run("run", "there", "--image=localhost/busybox:1.0", "--overrides",
		`{"spec":{"nodeSelector":{"disktype":"ssd"}}}`, "--command", "--", "sleep", "1000")
	k.eventually("a pod runs on the new node", is("n3 Running"), "get", "pod", "there", "-o",
		"jsonpath={.spec.nodeName} {.status.phase}")
	init := pidOf(t, "host", "node-n3")
	cluster.bonsai(t, "node", "remove", "n3")
	gone()
	if out := k.run("get", "pods", "-o", "name"); out != "" {
		t.Errorf("pods: %s", out)
	}
	if err := syscall.Kill(init, 0); err == nil {
		t.Error("its init runs")
	}
	if after := pidOf(t, "host", "node-n1"); after != before {
		t.Errorf("n1's init is %d, not %d", after, before)
	}
}

// bonsai runs a command on the cluster under test, which must succeed.
func (e env) bonsai(t *testing.T, args ...string) string {
	t.Helper()
	out, err := e.command(3*time.Minute, "bonsai", append([]string{"--data-dir", e.data}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
