package vm

import (
	"fmt"
	"strings"
	"testing"
)

// modest is a pod that keeps what it requests and is never taken for want of memory. noPodTwice does not count it.
const modest = `kubectl run modest --image=localhost/busybox:1.0 --overrides='{"spec":{"containers":[{"name":"modest","image":"localhost/busybox:1.0","command":["sleep","2000000"],"resources":{"limits":{"cpu":"50m","memory":"32Mi"}}}]}}'
kubectl wait --for=condition=Ready pod/modest --timeout=10m`

// greedy returns a pod that runs a shell script, with a directory in memory at /memory and one on the disk at /disk.
func greedy(name, script string) string {
	return fmt.Sprintf(`kubectl apply -f - <<'END'
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  terminationGracePeriodSeconds: 1
  restartPolicy: Never
  volumes: [{name: m, emptyDir: {medium: Memory}}, {name: d, emptyDir: {}}]
  containers:
  - name: c
    image: localhost/busybox:1.0
    command: [sh, -c, %q]
    volumeMounts: [{name: m, mountPath: /memory}, {name: d, mountPath: /disk}]
END`, name, script)
}

// condition returns what prints the status of one of the node's conditions.
func condition(name string) string {
	return `kubectl get node n1 -o 'jsonpath={.status.conditions[?(@.type=="` + name + `")].status}'`
}

// TestPressure: on a machine that has little left, the pod goes that takes it, and nobody else; a process that is
// quicker than the kubelet is the kernel's. The pod of the first part is slow on purpose: the kubelet looks every ten
// seconds, and the kernel cannot take back what is in memory for a file that nobody deletes.
func TestPressure(t *testing.T) {
	m := newClusterOnDisk(t)
	must(t, m, modest)
	for name, use := range map[string]struct{ condition, resource, script string }{
		"memory": {"MemoryPressure", "memory",
			"dd if=/dev/zero of=/memory/most bs=1M count=$(awk '/MemAvailable/ {print int($2/1024) - 400}' /proc/meminfo) 2>/dev/null; " +
				"i=0; while dd if=/dev/zero of=/memory/$i bs=1M count=8 2>/dev/null; do i=$((i+1)); sleep 2; done; sleep 1000000"},
		"disk": {"DiskPressure", "ephemeral-storage",
			"i=0; while dd if=/dev/zero of=/disk/$i bs=1M count=64 2>/dev/null; do i=$((i+1)); sleep 1; done; sleep 1000000"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := "greedy-" + name
			must(t, m, greedy(pod, use.script))
			eventually(t, m, "kubectl get pod "+pod+" -o 'jsonpath={.status.phase} {.status.reason}'", "Failed Evicted")
			// The kubelet says so for five minutes more.
			eventually(t, m, condition(use.condition), "True")
			message := must(t, m, "kubectl get pod "+pod+" -o 'jsonpath={.status.message}'")
			if !strings.Contains(message, "The node was low on resource: "+use.resource) {
				t.Errorf("the message is %q", message)
			}
			must(t, m, "kubectl delete pod "+pod)
			eventually(t, m, condition(use.condition), "False")
			back(t, m)
		})
	}
	t.Run("out of memory", func(t *testing.T) {
		must(t, m, "kubectl delete events --all") // the kernel may have ended something before
		must(t, m, greedy("sudden", "for i in 1 2 3 4; do dd if=/dev/zero of=/dev/null bs=1500M count=1 & done; wait; sleep 1000000"))
		eventually(t, m, `kubectl get events --field-selector involvedObject.kind=Node -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}'`,
			"SystemOOM: System OOM encountered, victim process: dd,")
		must(t, m, "kubectl delete pod sudden")
		back(t, m)
	})
	restarts := must(t, m, "kubectl get pod modest -o 'jsonpath={.status.phase} {.status.containerStatuses[0].restartCount}'")
	if restarts != "Running 0" {
		t.Errorf("the modest pod: %s", restarts)
	}
	if others := must(t, m, "kubectl get pods -A --field-selector status.phase=Failed -o name"); others != "" {
		t.Errorf("other pods were evicted, too: %s", others)
	}
	noPodTwice(t, m)
}
