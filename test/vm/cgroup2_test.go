package vm

import (
	"strings"
	"testing"
)

// limited creates a pod with limits, which also asks for huge pages.
const limited = `cat <<'EOF' | kubectl apply -f -
apiVersion: v1
kind: Pod
metadata: {name: limited}
spec:
  containers:
  - name: c
    image: localhost/busybox:1.0
    command: [sleep, "1000000"]
    resources: {limits: {cpu: 250m, memory: 64Mi, hugepages-2Mi: 4Mi}}
EOF
kubectl wait --for=condition=Ready pod/limited --timeout=10m`

// TestCgroups: the kernel holds pods to what they ask for, and spares what runs the cluster, on a machine whose groups
// systemd owns.
func TestCgroups(t *testing.T) {
	m := newCluster(t)
	must(t, m, "echo 8 >/proc/sys/vm/nr_hugepages && systemctl restart "+unit)
	back(t, m)
	must(t, m, limited)
	// The files of the pod's group, by what they must say.
	const group = "cd $(find /sys/fs/cgroup -type d -name pod$(kubectl get pod limited -o 'jsonpath={.metadata.uid}')) && "
	for file, want := range map[string]string{"cpu.max": "25000 100000", "memory.max": "67108864",
		"memory.swap.max": "0", "hugetlb.2MB.max": "4194304", "hugetlb.2MB.rsvd.max": "4194304"} {
		if got := must(t, m, group+"cat "+file); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
	for process, want := range map[string]string{"etcd": "-997", "kube-apiserver": "-997", "kubelet": "-999",
		"kube-proxy": "-999", "containerd": "-999"} {
		if got := must(t, m, "cat /proc/$(pgrep -o -x "+process+")/oom_score_adj"); got != want {
			t.Errorf("%s: OOM score %s, want %s", process, got, want)
		}
	}
	if shown := must(t, m, "kubectl get --raw /api/v1/nodes/n1/proxy/stats/summary"); !strings.Contains(shown, `"psi"`) {
		t.Error("no pressure in the summary")
	}
}
