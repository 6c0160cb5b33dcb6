package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// forward asks a target through kubectl port-forward.
func forward(t *testing.T, k kubectl, target, port, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(cluster.bin, k.binary), "-n", k.namespace, "port-forward", target,
		":"+port)
	cmd.Env = append(os.Environ(), "HOME="+cluster.home, "KUBECONFIG="+cluster.kubeconfig)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cancel(); _ = cmd.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	address, _, ok := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " -> ")
	if err != nil || !ok {
		t.Fatalf("port-forward printed %q, %v", line, err)
	}
	for range 3 {
		if got, err := fetch(ctx, "http://"+address); err != nil || got != want {
			t.Errorf("through port-forward: %q, %v", got, err)
		}
	}
}

// fetch asks from the host, over a connection of its own.
func fetch(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, here(5*time.Second))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return strings.TrimSpace(string(b)), err
}

// TestQoSCgroups: https://kubernetes.io/docs/concepts/workloads/pods/pod-qos/.
func TestQoSCgroups(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "qos")
	for name, c := range map[string]struct{ resources, class, parent string }{
		"guaranteed": {"resources: {limits: {cpu: 100m, memory: 64Mi}}", "Guaranteed", "kubepods"},
		"burstable": {"resources: {requests: {cpu: 100m, memory: 16Mi}, limits: {memory: 64Mi}}", "Burstable",
			"burstable"},
		"besteffort": {"", "BestEffort", "besteffort"},
	} {
		k.apply(podOf(name, "sleep 3600", c.resources, "nodeName: n1"))
		k.ready(name)
		k.field(name, ".status.qosClass", c.class)
		uid := k.run("get", "pod", name, "-o", "jsonpath={.metadata.uid}")
		out, err := cluster.command(usual, "bonsai", "--data-dir", cluster.data, "exec", "n1", "--", "/bin/busybox",
			"sh", "-c",
			fmt.Sprintf("for d in $(find /sys/fs/cgroup -type d -name 'pod%s'); do echo $d; cat $d/memory.limit_in_bytes $d/memory.max 2>/dev/null; done; true", uid))
		if err != nil || !strings.Contains(out, "/"+c.parent+"/pod"+uid) {
			t.Errorf("the cgroup of %s: %s, %v", name, out, err)
		}
		if limited := strings.Contains(out, "67108864"); limited != (name != "besteffort") {
			t.Errorf("the memory limit of %s: %s", name, out)
		}
	}
}

// TestAppArmor: where the machine has AppArmor, a pod that asks for the runtime's profile is confined by it; elsewhere
// it is rejected, and says why.
func TestAppArmor(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "apparmor")
	k.apply(podOf("asks", "sleep 3600", "securityContext: {appArmorProfile: {type: RuntimeDefault}}", "nodeName: n1"))
	k.apply(podOf("unconfined", "sleep 3600", "securityContext: {appArmorProfile: {type: Unconfined}}", "nodeName: n1"))
	k.ready("unconfined")
	enabled, err := os.ReadFile("/sys/module/apparmor/parameters/enabled")
	if _, missing := exec.LookPath("apparmor_parser"); err == nil && missing == nil &&
		strings.HasPrefix(string(enabled), "Y") {
		k.ready("asks")
		if profile := k.run("exec", "asks", "--", "cat",
			"/proc/self/attr/current"); !strings.HasPrefix(profile, "cri-containerd.apparmor.d (enforce)") {
			t.Errorf("runs as %s", profile)
		}
		return
	}
	k.field("asks", ".status.reason", "AppArmor")
	k.field("asks", ".status.message", "Pod was rejected: Cannot enforce AppArmor: AppArmor is not enabled on the host")
	k.field("asks", ".status.phase", "Failed")
}

// TestServicesAcrossNodes: pods reach each other over plain routes, Services from pods, nodes and the host.
func TestServicesAcrossNodes(t *testing.T) {
	t.Parallel()
	k := newNamespace(t, "kubectl", "across")
	for _, n := range []string{"n1", "n2"} {
		k.apply(strings.Replace(
			podOf("on-"+n, serve, "readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}", "nodeName: "+n),
			"labels: {app: on-"+n+"}", "labels: {app: web}", 1))
	}
	k.apply(`
apiVersion: v1
kind: Service
metadata: {name: port}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: sticky}
spec: {sessionAffinity: ClientIP, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: empty}
spec: {selector: {app: nothing}, ports: [{port: 80}]}
`)
	k.ready("on-n1", "on-n2")
	ask := func(from, url string) []string {
		return []string{"exec", from, "--", "sh", "-c", "timeout 5 wget -qO- " + url + " 2>&1"}
	}
	for from, to := range map[string]string{"on-n1": "on-n2", "on-n2": "on-n1"} {
		ip := k.run("get", "pod", to, "-o", "jsonpath={.status.podIP}")
		k.eventually("a pod of the other node answers", is(to), ask(from, "http://"+ip+":8080")...)
	}
	port := k.run("get", "service", "port", "-o", "jsonpath={.spec.ports[0].nodePort}")
	for _, node := range []string{"n1", "n2"} {
		ip := k.run("get", "node", node, "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`)
		seen := map[string]bool{}
		until(t, "both pods answer at the NodePort of "+node, func() (bool, string) {
			got, err := fetch(t.Context(), "http://"+ip+":"+port)
			if err == nil {
				seen[got] = true
			}
			return seen["on-n1"] && seen["on-n2"], fmt.Sprint(seen, err)
		})
	}
	first := k.eventually("the sticky Service answers", contains("on-n"), ask("on-n1", "http://sticky")...)
	if out := k.run("exec", "on-n1", "--", "sh", "-c",
		"for i in 1 2 3 4 5 6 7 8; do timeout 5 wget -qO- http://sticky; done"); out !=
		strings.TrimSpace(strings.Repeat(first+"\n", 8)) {
		t.Errorf("with session affinity %q is followed by %q", first, out)
	}
	until(t, "a Service without endpoints refuses at once", func() (bool, string) {
		out, err := k.try(ask("on-n1", "http://empty")...)
		return err != nil && strings.Contains(out, "refused"), out
	})
}
