package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// volumes is a pod with every kind of volume, and what they are filled from.
const volumes = `
apiVersion: v1
kind: ConfigMap
metadata: {name: cm}
data: {key: one, other: two}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {password: hush}
---
apiVersion: v1
kind: Pod
metadata: {name: v, labels: {color: red}, annotations: {note: hello}}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {fsGroup: 1234}
  volumes:
  - {name: cm, configMap: {name: cm, items: [{key: key, path: deep/file, mode: 0400}]}}
  - {name: whole, configMap: {name: cm}}
  - {name: secret, secret: {secretName: s, defaultMode: 0440}}
  - {name: optional, secret: {secretName: none, optional: true}}
  - {name: fields, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}, {path: cpu, resourceFieldRef: {containerName: c, resource: limits.cpu, divisor: 1m}}]}}
  - name: all
    projected:
      sources:
      - serviceAccountToken: {path: token, audience: someone, expirationSeconds: 1200}
      - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: ca.crt}]}
      - downwardAPI: {items: [{path: namespace, fieldRef: {fieldPath: metadata.namespace}}]}
  - {name: memory, emptyDir: {medium: Memory, sizeLimit: 4Mi}}
  - {name: disk, emptyDir: {}}
  - {name: host, hostPath: {path: /etc, type: Directory}}
  containers:
  - name: c
    image: localhost/busybox:1.0
    command: [sleep, "3600"]
    resources: {limits: {cpu: 250m, memory: 32Mi}}
    volumeMounts:
    - {name: cm, mountPath: /cm}
    - {name: whole, mountPath: /whole}
    - {name: whole, mountPath: /single, subPath: other}
    - {name: secret, mountPath: /secret}
    - {name: optional, mountPath: /optional}
    - {name: fields, mountPath: /fields}
    - {name: all, mountPath: /all}
    - {name: memory, mountPath: /memory}
    - {name: disk, mountPath: /disk}
    - {name: host, mountPath: /host, readOnly: true}
`

// TestVolumes: https://kubernetes.io/docs/concepts/storage/volumes/.
func TestVolumes(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "volumes")
	k.apply(volumes)
	k.ready("v")
	for command, want := range map[string]string{
		"cat /cm/deep/file":                              "one",
		"stat -L -c %a /cm/deep/file":                    "440", // fsGroup lets the group read
		"ls /whole":                                      "key\nother",
		"cat /single":                                    "two",
		"cat /secret/password":                           "hush",
		"stat -f -c %T /secret":                          "tmpfs",
		"ls /optional":                                   "",
		"cat /fields/labels":                             `color="red"`,
		"cat /fields/cpu":                                "250",
		"cat /all/namespace":                             k.namespace,
		"grep -c BEGIN.CERTIFICATE /all/ca.crt":          "1",
		"stat -f -c %T /memory":                          "tmpfs",
		"stat -c %g /disk":                               "1234",
		"touch /disk/x /memory/x && ls /disk /memory":    "/disk:\nx\n\n/memory:\nx",
		"touch /host/x 2>&1; touch /secret/x 2>&1; true": "touch: /host/x: Read-only file system\ntouch: /secret/x: Read-only file system",
		"test -s /host/passwd || test -d /host; echo $?": "0",
		"cat /var/run/secrets/kubernetes.io/serviceaccount/namespace": k.namespace,
	} {
		if out, err := k.try("exec", "v", "--", "sh", "-c", command); err != nil || out != want {
			t.Errorf("%s: %q, not %q (%v)", command, out, want, err)
		}
	}
	token(t, k.run("exec", "v", "--", "cat", "/all/token"), k.namespace)

	k.run("patch", "configmap", "cm", "-p", `{"data":{"key":"changed"}}`)
	k.eventually("the mounted configMap follows", is("changed"), "exec", "v", "--", "cat", "/cm/deep/file")
	k.run("label", "pod", "v", "color=blue", "--overwrite")
	k.eventually("the mounted labels follow", contains(`color="blue"`), "exec", "v", "--", "cat", "/fields/labels")

	k.apply(podOf("waits", "cat /s/a", "volumeMounts: [{name: s, mountPath: /s}]",
		"restartPolicy: Never\n  volumes: [{name: s, secret: {secretName: later}}]"))
	k.events("waits", `Warning FailedMount MountVolume.SetUp failed for volume "s" : secret "later" not found`)
	k.run("create", "secret", "generic", "later", "--from-literal=a=b")
	k.field("waits", ".status.phase", "Succeeded")
}

// token checks the claims of a bound token.
func token(t *testing.T, jwt, namespace string) {
	t.Helper()
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		t.Fatalf("the token has %d parts", len(parts))
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Aud      []string `json:"aud"`
		Exp, Iat int64
		Sub      string
		Bound    struct {
			Namespace string
			Pod       struct{ Name, UID string }
			Node      struct{ Name string }
		} `json:"kubernetes.io"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	if len(claims.Aud) != 1 || claims.Aud[0] != "someone" || claims.Exp-claims.Iat != 1200 ||
		claims.Sub != "system:serviceaccount:"+namespace+":default" ||
		claims.Bound.Namespace != namespace || claims.Bound.Pod.Name != "v" || claims.Bound.Pod.UID == "" ||
		claims.Bound.Node.Name == "" {
		t.Errorf("the token says %+v", claims)
	}
}

// TestEnvironment: https://kubernetes.io/docs/tasks/inject-data-application/.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "environment")
	k.run("create", "configmap", "cm", "--from-literal=a=1", "--from-literal=b=2")
	k.run("create", "secret", "generic", "s", "--from-literal=p=q")
	k.run("create", "service", "clusterip", "svc", "--tcp=80:8080")
	address := k.run("get", "service", "svc", "-o", "jsonpath={.spec.clusterIP}")
	k.apply(podOf("e", "env | sort; hostname", `resources: {requests: {memory: 16Mi}, limits: {cpu: 500m}}
    envFrom: [{prefix: CM_, configMapRef: {name: cm}}, {secretRef: {name: s}}, {configMapRef: {name: none, optional: true}}]
    env:
    - {name: A, value: x}
    - {name: B, value: "$(A)-$(CM_a)-$$(A)-$(NOPE)"}
    - {name: KEY, valueFrom: {configMapKeyRef: {name: cm, key: b}}}
    - {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: p}}}
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: LABEL, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: POD_IP, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}
    - {name: ACCOUNT, valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}}
    - {name: CPU, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
    - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: requests.memory, divisor: 1Mi}}}`, "restartPolicy: Never\n  hostname: h\n  subdomain: sub"))
	k.apply(podOf("waits", "true", "env: [{name: X, valueFrom: {configMapKeyRef: {name: nowhere, key: k}}}]", ""))
	k.field("e", ".status.phase", "Succeeded")
	out := "\n" + k.run("logs", "e") + "\n"
	where := k.run("get", "pod", "e", "-o", "jsonpath={.spec.nodeName} {.status.podIP} {.status.hostIP}")
	var node, pod, host string
	if _, err := fmt.Sscan(where, &node, &pod, &host); err != nil {
		t.Fatal(where, err)
	}
	for _, want := range []string{"CM_a=1", "CM_b=2", "p=q", "A=x", "B=x-1-$(A)-$(NOPE)", "KEY=2", "SECRET=q", "NAME=e",
		"LABEL=e", "NODE=" + node, "POD_IP=" + pod,
		"HOST_IP=" + host, "ACCOUNT=default", "CPU=1", "MEMORY=16", "SVC_SERVICE_HOST=" + address,
		"SVC_PORT_80_TCP_PORT=80", "KUBERNETES_SERVICE_PORT=443", "HOSTNAME=h", "h"} {
		if !strings.Contains(out, "\n"+want+"\n") {
			t.Errorf("the environment lacks %s: %s", want, out)
		}
	}
	k.field("waits", ".status.containerStatuses[0].state.waiting.reason", "CreateContainerConfigError")
	k.field("waits", ".status.containerStatuses[0].state.waiting.message", `configmap "nowhere" not found`)
}

// TestStaticPod: https://kubernetes.io/docs/tasks/configure-pod-container/static-pod/.
func TestStaticPod(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "static")
	dir := filepath.Join(cluster.data, "nodes", "n1", "manifests")
	manifest := filepath.Join(dir, "e2e-static.yaml")
	write := func(script string) {
		text := strings.Replace(podOf("stat", script, "", ""), "{name: stat,",
			"{name: stat, namespace: "+k.namespace+",", 1)
		if err := os.WriteFile(filepath.Join(dir, ".e2e-static"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, ".e2e-static"), manifest); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.Remove(manifest) })
	write("echo one; sleep 3600")
	k.eventually("the mirror pod runs", is("Running"), "get", "pod", "stat-n1", "-o", "jsonpath={.status.phase}")
	k.eventually("its log", is("one"), "logs", "stat-n1")
	const facts = `jsonpath={.metadata.annotations.kubernetes\.io/config\.source} {.metadata.ownerReferences[0].kind} {.status.containerStatuses[0].containerID}`
	before := k.run("get", "pod", "stat-n1", "-o", facts)
	if !strings.HasPrefix(before, "file Node containerd://") {
		t.Errorf("the mirror pod is %q", before)
	}
	uid := k.run("get", "pod", "stat-n1", "-o", "jsonpath={.metadata.uid}")
	k.run("delete", "pod", "stat-n1", "--grace-period=0", "--force", "--wait=false")
	k.eventually("another mirror of the same containers", func(out string) bool {
		return out != uid+" "+before && strings.HasSuffix(out, before)
	},
		"get", "pod", "stat-n1", "-o", strings.Replace(facts, "jsonpath=", "jsonpath={.metadata.uid} ", 1))
	write("echo two; sleep 3600")
	k.eventually("the changed manifest is run", is("two"), "logs", "stat-n1")
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	k.eventually("the pod goes with its manifest", contains("No resources found"), "get", "pods")
}
