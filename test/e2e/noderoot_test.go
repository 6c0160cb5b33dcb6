package e2e

import (
	"strings"
	"testing"
)

// TestNodeRoot: a node, and a pod that is shown the node's root, see nothing of the machine's files but its programs, and may write none of
// these; what a pod writes elsewhere is seen on the node.
func TestNodeRoot(t *testing.T) {
	k := newNamespace(t, "kubectl", "node-root")
	node := func(command string) (string, error) {
		return cluster.command(patience, "bonsai", "--data-dir", cluster.data, "exec", "n1", "--", "sh", "-c", command)
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
