package cluster

import (
	"strings"
	"testing"

	"bonsai/pkg/cluster/node"
	"bonsai/pkg/cluster/plan"
	"bonsai/pkg/cluster/plan/clusterfile"
)

// TestFileReachesComponents: what the file says of flags, gates and taints is what the components get.
func TestFileReachesComponents(t *testing.T) {
	t.Parallel()
	c, err := clusterfile.Read([]byte(`apiVersion: bonsai.io/v1alpha1
kind: Cluster
nodes:
- {}
- taints: [{key: dedicated, value: db, effect: NoSchedule}]
featureGates: {MemoryQoS: true, PodDeletionCost: false}
componentFlags: {kube-apiserver: {v: "4", profiling: "false"}}
`), plan.Default("/data", "/bin"))
	if err != nil {
		t.Fatal(err)
	}
	var args []string
	for _, p := range everyProcess(c) {
		if p.Name == "kube-apiserver" {
			args = p.Argv
		}
	}
	if tail := strings.Join(args[len(args)-3:],
		" "); tail != "--feature-gates=MemoryQoS=true,PodDeletionCost=false --profiling=false --v=4" {
		t.Errorf("kube-apiserver's last flags: %s", tail)
	}
	n := node.Of(c, c.Nodes[1])
	if got := strings.Join(n.UserFlags("kubelet"), " "); got != "--register-with-taints=dedicated=db:NoSchedule" {
		t.Errorf("kubelet: %s", got)
	}
	if !strings.Contains(n.KubeletConfig(), "featureGates: {MemoryQoS: true, PodDeletionCost: false}\n") {
		t.Errorf("kubelet's file:\n%s", n.KubeletConfig())
	}
}
