package e2e

import (
	"strings"
	"testing"
)

// TestNodeRoot: a node, and a pod that is shown the node's root, see nothing of the machine's files but its programs,
// and may write none of these; what a pod writes elsewhere is seen on the node.
func TestNodeRoot(t *testing.T) {
	k := newNamespace(t, "kubectl", "node-root")
	node := func(command string) (string, error) {
		return cluster.command(usual, "bonsai", "--data-dir", cluster.data, "exec", "n1", "--", "sh", "-c", command)
	}
	if out, err := node("ls " + cluster.home); err == nil {
		t.Errorf("the node sees the user's home: %s", out)
	}
	if out, err := node("touch /usr/written"); err == nil || !strings.Contains(out, "Read-only") {
		t.Errorf("the node writes where programs are: %s, %v", out, err)
	}
	k.apply(`apiVersion: v1
kind: Pod
metadata: {name: nosy}
spec:
  nodeName: n1
  restartPolicy: Never
  volumes: [{name: root, hostPath: {path: /}}]
  containers:
  - name: c
    image: localhost/busybox:1.0
    command: [sh, -c, "cat /host/etc/hostname && ! ls /host` + cluster.home + ` 2>/dev/null && ! cat /host/etc/shadow 2>/dev/null && echo written >/host/srv/by-pod"]
    volumeMounts: [{name: root, mountPath: /host}]
`)
	k.eventually("the pod has seen enough", is("Succeeded"), "get", "pod", "nosy", "-o", "jsonpath={.status.phase}")
	if out := k.run("logs", "nosy"); out != "n1" {
		t.Errorf("the pod sees another host's name: %s", out)
	}
	if out, err := node("cat /srv/by-pod"); err != nil || out != "written\n" {
		t.Errorf("what the pod wrote: %q, %v", out, err)
	}
}

// TestNodeData: a privileged pod that is shown the node's root finds no authority's key anywhere below it, and of the
// data directory nothing that is another node's or the control plane's. What its own kubelet needs it does find.
func TestNodeData(t *testing.T) {
	k := newNamespace(t, "kubectl", "node-data")
	k.apply(`apiVersion: v1
kind: Pod
metadata: {name: prying}
spec:
  nodeName: n1
  hostPID: true
  restartPolicy: Never
  volumes: [{name: root, hostPath: {path: /}}]
  containers:
  - name: c
    image: localhost/busybox:1.0
    command: [sh, -c, "cd /host && find ` + strings.TrimPrefix(cluster.data, "/") + ` run/bonsai -name '*.key' -o -name '*.conf' -o -name '*.sock' -o -name cluster.json -o -path '*/logs/*'; find . -xdev -name '*ca.key'; find /proc/1/root/run/bonsai/pki"]
    securityContext: {privileged: true}
    volumeMounts: [{name: root, mountPath: /host}]
`)
	k.eventually("the pod has looked everywhere", is("Succeeded"), "get", "pod", "prying", "-o",
		"jsonpath={.status.phase}")
	found := k.run("logs", "prying")
	for _, own := range []string{"pki/kubelet-server-n1.key", "kubeconfig/kubelet-n1.conf", "kubeconfig/proxy-n1.conf",
		"kubeconfig/network-n1.conf", "run/n1/node.sock", "logs/n1/kubelet.log", "/proc/1/root/run/bonsai/pki/ca.crt"} {
		if !strings.Contains(found, own) {
			t.Errorf("the node does not see its own %s", own)
		}
	}
	for line := range strings.Lines(found) {
		if strings.Contains(line, "/volumes/kubernetes.io~empty-dir/") {
			continue // a pod's own, as the keys that metrics-server makes for itself
		}
		for _, strange := range []string{"ca.key", "sa.key", "etcd", "admin", "apiserver", "n2", "supervisor",
			"cluster.json", "controller-manager", "scheduler"} {
			if name, _ := strings.CutPrefix(line,
				strings.TrimPrefix(cluster.data, "/")); strings.Contains(name, strange) {
				t.Errorf("the node sees %s", line)
			}
		}
	}
}
