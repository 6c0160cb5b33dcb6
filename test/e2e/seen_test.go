package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStatusPIDs: the pids that status shows are the host's, of nodes' processes, too, and each shows what it has of
// the machine.
func TestStatusPIDs(t *testing.T) {
	t.Parallel()
	for where, process := range map[string]string{"host": "etcd", "n1": "kubelet", "n2": "containerd"} {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pidOf(t, where, process)))
		if err != nil || strings.TrimSpace(string(name)) != process {
			t.Errorf("%s on %s is %q, %v", process, where, name, err)
		}
	}
	out := cluster.bonsai(t, "status")
	for _, want := range []string{"MEMORY", " MiB ", "The API server at https://127.0.0.1:", "10.77.0.12",
		"containerd://"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

// TestReport: a bug report of a running cluster has logs, objects and versions, and no key.
func TestReport(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "report")
	cluster.bonsai(t, "export", "logs", dir)
	for file, want := range map[string]string{"logs/n2/kubelet.log": `component="kubelet"`, "objects.txt": "coredns",
		"status.txt": "RESTARTS", "versions.txt": "runc version", "cluster.json": "NodeSubnet"} {
		if data, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(data), want) {
			t.Errorf("%s has no %q: %v", file, want, err)
		}
	}
	if out := cluster.bonsai(t, "logs", "kubelet", "--node", "n2", "--tail", "2"); strings.Count(out, "\n") > 2 ||
		!strings.Contains(out, `component="kubelet"`) {
		t.Errorf("two lines of a log:\n%s", out)
	}
}
