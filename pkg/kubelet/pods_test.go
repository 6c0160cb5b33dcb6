package kubelet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestStaticPodsAreValidated: a usual manifest is taken, and one whose names lead out of the pod's directory is not.
func TestStaticPodsAreValidated(t *testing.T) {
	t.Parallel()
	const usual = `
metadata: {name: etcd-n1, namespace: kube-system}
spec:
  nodeName: n1
  hostNetwork: true
  priorityClassName: system-node-critical
  securityContext: {seccompProfile: {type: RuntimeDefault}}
  tolerations: [{operator: Exists, effect: NoExecute}]
  containers:
  - name: etcd
    image: etcd:3
    command: [etcd, --data-dir=/var/lib/etcd]
    ports: [{name: client, containerPort: 2379, hostPort: 2379}]
    resources: {requests: {cpu: 100m, memory: 100Mi}}
    livenessProbe: {httpGet: {host: 127.0.0.1, path: /livez, port: client, scheme: HTTP}}
    volumeMounts: [{name: data, mountPath: /var/lib/etcd}, {name: tmp, mountPath: /tmp}]
  volumes:
  - {name: data, hostPath: {path: /var/lib/etcd, type: DirectoryOrCreate}}
  - {name: tmp, emptyDir: {}}
`
	for what, c := range map[string]struct{ text, want string }{
		"usual":           {usual, ""},
		"a volume's path": {strings.ReplaceAll(usual, "name: tmp", "name: ../../../tmp"), "spec.volumes[1].name"},
		"two of one name": {strings.Replace(usual, "  - name: etcd\n",
			"  - {name: etcd, image: x}\n  - name: etcd\n", 1), "Duplicate"},
		"a subpath beyond": {strings.Replace(usual, "mountPath: /tmp", "mountPath: /tmp, subPath: ../x", 1), "subPath"},
	} {
		var pod corev1.Pod
		if err := yaml.UnmarshalStrict([]byte(c.text), &pod); err != nil {
			t.Fatal(what, err)
		}
		err := completeStatic(&pod)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}
