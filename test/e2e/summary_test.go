package e2e

import (
	"encoding/json"
	"testing"
)

// diskUser is a pod that writes 4 MiB beside its volumes, 8 MiB into one, and a line to its log.
const diskUser = `
apiVersion: v1
kind: Pod
metadata: {name: writer}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: c
    image: localhost/busybox:1.0
    command: [sh, -c, "dd if=/dev/urandom of=/own bs=1M count=4 && dd if=/dev/urandom of=/data/file bs=1M count=8 && echo written && exec sleep 1000000"]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]
`

// TestSummary: what pods have on the node's disk, as the kubelet's summary tells it. The runtime and the kubelet
// measure from time to time.
func TestSummary(t *testing.T) {
	isLong(t)
	t.Parallel()
	k := newNamespace(t, "kubectl", "summary")
	k.apply(diskUser)
	k.eventually("the pod's log", func(out string) bool { return out != "" }, "logs", "writer")
	node := k.run("get", "pod", "writer", "-o=jsonpath={.spec.nodeName}")
	type fs struct{ UsedBytes, CapacityBytes, InodesUsed int64 }
	var summary struct {
		Node struct {
			Rlimit           struct{ Curproc int64 }
			SystemContainers []struct{ Name string }
		}
		Pods []struct {
			PodRef     struct{ Name, Namespace string }
			Ephemeral  fs `json:"ephemeral-storage"`
			Containers []struct{ Rootfs, Logs fs }
			Volume     []struct {
				fs
				Name string
			}
		}
	}
	k.eventually("the pod's use of the disk", func(out string) bool {
		if json.Unmarshal([]byte(out), &summary) != nil {
			return false
		}
		for _, p := range summary.Pods {
			if p.PodRef.Name != "writer" || p.PodRef.Namespace != k.namespace || len(p.Containers) != 1 ||
				len(p.Volume) != 1 {
				continue
			}
			c, v := p.Containers[0], p.Volume[0]
			return c.Rootfs.UsedBytes >= 4<<20 && c.Rootfs.UsedBytes < 8<<20 && c.Logs.UsedBytes > 0 &&
				v.Name == "data" && v.UsedBytes >= 8<<20 && v.CapacityBytes > v.UsedBytes &&
				p.Ephemeral.UsedBytes == c.Rootfs.UsedBytes+c.Logs.UsedBytes+v.UsedBytes
		}
		return false
	}, "get", "--raw", "/api/v1/nodes/"+node+"/proxy/stats/summary")
	if n := summary.Node; n.Rlimit.Curproc == 0 || len(n.SystemContainers) != 1 ||
		n.SystemContainers[0].Name != "pods" {
		t.Errorf("node: %+v", n)
	}
}
