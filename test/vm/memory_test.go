package vm

import "testing"

// kubeletFile is one of the kubelet's configuration, which a test may change between two starts of the cluster.
const kubeletFile = "/root/kubelet/10-memory.conf"

// withKubeletFile makes a cluster whose node reads that file.
const withKubeletFile = `cat >/root/cluster.yaml <<'END'
apiVersion: bonsai.io/v1alpha1
kind: Cluster
nodes: [{mounts: [{hostPath: /root/kubelet, nodePath: /etc/kubelet.d, readOnly: true}]}]
componentFlags: {kubelet: {config-dir: /etc/kubelet.d}}
END
bonsai up --name try --config /root/cluster.yaml && bonsai stop --name try && systemctl enable --now ` + unit

// kubeletSays returns the script that writes that file with some fields more.
func kubeletSays(fields string) string {
	return "mkdir -p /root/kubelet && cat >" + kubeletFile + " <<'END'\napiVersion: kubelet.config.k8s.io/v1beta1\n" +
		"kind: KubeletConfiguration\n" + fields + "\nEND"
}

// half is a pod that requests 64 MiB, has a limit of 128, and uses 124 of them again and again.
const half = `kubectl apply -f - <<'END'
apiVersion: v1
kind: Pod
metadata: {name: half}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: c
    image: localhost/busybox:1.0
    command: [sh, -c, "while :; do dd if=/dev/zero of=/dev/null bs=124M count=1 2>/dev/null; sleep 1; done"]
    resources: {requests: {memory: 64Mi}, limits: {memory: 128Mi}}
END
kubectl wait --for=condition=Ready pod/half --timeout=10m`

// TestMemory: the kernel holds pods to the kubelet's settings of swap and memory. With LimitedSwap (KEP-2400), a pod
// may use its part of the machine's swap; with NoSwap it uses none. A throttling factor (KEP-2570) slows a pod down
// before it reaches its limit.
func TestMemory(t *testing.T) {
	m := newMachine(t, func(c *Config) { c.Disks = []int64{1 << 30} })
	must(t, m, "mkswap /dev/vdc && echo '/dev/vdc none swap sw 0 0' >>/etc/fstab && swapon -a")
	must(t, m, kubeletSays("failSwapOn: false\nmemorySwap: {swapBehavior: LimitedSwap}\n"+
		"memoryThrottlingFactor: 0.9\nmemoryReservationPolicy: TieredReservation"))
	must(t, m, withKubeletFile)
	eventually(t, m, isReady, nodesReady)
	must(t, m, half)
	// The files of the container's group and of the pod's, which is its parent.
	const pod = "cd $(find /sys/fs/cgroup -type d -name pod$(kubectl get pod half -o 'jsonpath={.metadata.uid}')) && "
	const container = pod + "cd $(dirname $(grep -lx 134217728 */memory.max)) && "
	is := func(what, script, want string) {
		t.Helper()
		if got := must(t, m, script); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	// 64 MiB and nine tenths of the 64 up to the limit, in whole pages.
	is("memory.high of the container", container+"cat memory.high", "127504384")
	is("memory.low of the container", container+"cat memory.low", "67108864")
	is("memory.low of the pod", pod+"cat memory.low", "67108864")
	is("memory.swap.max, as a part of the swap, is the request as a part of the memory",
		container+`awk '/^MemTotal/ {m=$2} /^SwapTotal/ {s=$2} END {printf "%d", int(65536*s/m/4)*4096}' /proc/meminfo`,
		must(t, m, container+"cat memory.swap.max"))
	eventually(t, m, container+`awk '/^high / {print ($2 > 0 ? "throttled" : "not yet")}' memory.events`, "throttled")
	eventually(t, m, container+`[ "$(cat memory.swap.current)" -gt 0 ] && echo swapped`, "swapped")

	must(t, m, kubeletSays("failSwapOn: false\nmemorySwap: {swapBehavior: NoSwap}"))
	must(t, m, "systemctl restart "+unit)
	eventually(t, m, isReady, nodesReady)
	must(t, m, "kubectl delete pod half && "+half)
	is("memory.swap.max of the container", container+"cat memory.swap.max", "0")
	is("memory.swap.max of the pod", pod+"cat memory.swap.max", "0")
	is("swap that a pod without it uses", pod+"cat memory.swap.current", "0")
	is("memory.high without a factor", container+"cat memory.high", "max")
}
