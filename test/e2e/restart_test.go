package e2e

import (
	"strings"
	"testing"
	"time"
)

// TestRestart: restart gives every component of the control plane and of the nodes a new process, and no pod notices.
func TestRestart(t *testing.T) {
	k := newNamespace(t, "kubectl", "restart")
	k.apply(web)
	k.run("rollout", "status", "deployment/web", bound(80))
	containers := []string{"get", "pods", "-o",
		"jsonpath={.items[*].status.containerStatuses[0]['containerID','restartCount']}"}
	before, processes := k.run(containers...), pidsByName(t)
	cluster.bonsai(t, "restart")
	if after := k.run(containers...); after != before {
		t.Errorf("the containers were %s, and are %s", before, after)
	}
	for name, pid := range pidsByName(t) {
		_, component, _ := strings.Cut(name, " ")
		stays := component == "containerd" || component == "bonsai-network" || component == "bonsai-traces" ||
			strings.HasPrefix(component, "node-")
		if (processes[name] == pid) != stays {
			t.Errorf("%s was process %s, and is %s", name, processes[name], pid)
		}
	}
	k.eventually("the Service answers", contains("web-"), "exec", "deployment/web", "--", "timeout", "5", "wget", "-qO-",
		"http://web")
}

// pidsByName returns the processes of bonsai status: "n1 kubelet" and its pid.
func pidsByName(t *testing.T) map[string]string {
	t.Helper()
	out, err := cluster.command(time.Minute, "bonsai", "--data-dir", cluster.data, "status")
	if err != nil {
		t.Fatal(out, err)
	}
	found := map[string]string{}
	for line := range strings.Lines(pids(out)) {
		f := strings.Fields(line)
		found[f[0]+" "+f[1]] = f[2]
	}
	return found
}
