package e2e

import (
	"strings"
	"testing"
)

// TestResize gives a running pod other resources: CPU without a restart, memory with one, as its policy says. What the
// node could not give to one pod alone is refused.
func TestResize(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "resize")
	k.apply(podOf("web", "sleep 3600",
		"resources: {requests: {cpu: 50m, memory: 16Mi}, limits: {cpu: 100m, memory: 64Mi}}\n"+
			"    resizePolicy: [{resourceName: memory, restartPolicy: RestartContainer}]", "nodeName: n2"))
	k.ready("web")
	resize := func(resources string) string {
		return k.run("patch", "pod", "web", "--subresource", "resize", "-p",
			`{"spec":{"containers":[{"name":"c","resources":`+resources+`}]}}`)
	}
	container := k.run("get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].containerID}")
	resize(`{"requests":{"cpu":"60m"},"limits":{"cpu":"200m"}}`)
	k.field("web", ".status.containerStatuses[0].resources.limits.cpu", "200m")
	k.field("web", ".status.containerStatuses[0].resources.requests.cpu", "60m")
	k.field("web", ".status.containerStatuses[0].containerID", container)
	k.field("web", `.status.conditions[?(@.type=="PodResizeInProgress")].type`, "")
	k.events("web", "Pod resize completed")
	quota := k.run("exec", "web", "--", "sh", "-c",
		"cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null; true")
	if !strings.Contains(quota, "20000") {
		t.Errorf("the container's quota: %s", quota)
	}
	resize(`{"limits":{"memory":"96Mi"}}`)
	k.field("web", ".status.containerStatuses[0].resources.limits.memory", "96Mi")
	k.field("web", ".status.containerStatuses[0].restartCount", "1")
	if out, err := k.try("patch", "pod", "web", "--subresource", "resize", "-p",
		`{"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"9k"},"requests":{"cpu":"9k"}}}]}}`); err ==
		nil || !strings.Contains(out, "node didn't have enough allocatable resources") {
		t.Errorf("more than the node has: %s, %v", out, err)
	}
}
