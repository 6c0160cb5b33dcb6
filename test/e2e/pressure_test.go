package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pressed has n2's kubelet run with more settings until the test ends: its configuration is changed and it is killed,
// as for a crash.
func pressed(t *testing.T, settings string) {
	t.Helper()
	path := filepath.Join(cluster.data, "nodes", "n2", "etc", "kubelet.yaml")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		kill(t, "n2/kubelet")
	}
	var kept []string
	for line := range strings.Lines(string(before)) {
		if !strings.HasPrefix(line, "evictionHard:") {
			kept = append(kept, line)
		}
	}
	t.Cleanup(func() { write(string(before)) })
	write(strings.Join(kept, "") + settings)
}

// total is the memory of the machine in MiB.
func total(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	var kib int
	if _, err := fmt.Sscanf(string(text), "MemTotal: %d kB", &kib); err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}

// TestMemoryPressure: all pods of a node, which has none before, together get 500 MiB, of which 300 are to stay free.
// Of those that use more than they request the one of the lowest priority goes, nobody else, and no pod without
// requests is taken meanwhile.
func TestMemoryPressure(t *testing.T) {
	k := newNamespace(t, "kubectl", "memory-pressure")
	t.Cleanup(func() { k.run("uncordon", "n2") })
	k.run("drain", "n2", "--delete-emptydir-data", bound(80)) // add-ons would leave too little room
	holds := func(mb int) string { return fmt.Sprintf("(head -c %d000000 /dev/zero; sleep 3600) | tail", mb) }
	pressed(t, fmt.Sprintf("systemReserved: {memory: %dMi}\nevictionHard: {memory.available: 300Mi}\nevictionPressureTransitionPeriod: 10s\n", total(t)-500))
	k.apply(podOf("within", holds(80), "resources: {requests: {memory: 110Mi}}", "nodeName: n2"))
	k.apply(podOf("above", holds(150), "resources: {requests: {memory: 16Mi}}", "nodeName: n2"))
	k.field("above", ".status.reason", "Evicted")
	k.field("above", `.status.conditions[?(@.type=="DisruptionTarget")].reason`, "TerminationByKubelet")
	k.events("above", "The node was low on resource: memory.")
	k.field("within", ".status.phase", "Running")
	if out := k.run("get", "pod", "above", "-o",
		"jsonpath={.status.message}"); !strings.Contains(out, "request is 16Mi, has larger consumption of memory.") {
		t.Error(out)
	}
	k.eventually("no more pressure", is("False"), "get", "node", "n2", "-o",
		`jsonpath={.status.conditions[?(@.type=="MemoryPressure")].status}`)
	k.field("within", ".status.phase", "Running")
}
