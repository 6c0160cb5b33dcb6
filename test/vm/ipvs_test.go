package vm

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ipvsConfig makes a cluster whose kube-proxy makes Services virtual servers of IPVS.
const ipvsConfig = `cat >/root/ipvs.yaml <<'EOF'
apiVersion: bonsai.io/v1alpha1
kind: Cluster
componentFlags:
  kube-proxy: {proxy-mode: ipvs, ipvs-scheduler: wrr}
EOF
bonsai up --name try --nodes 2 --config /root/ipvs.yaml`

// ipvsServed is a Service that says yes, with an endpoint on the first node alone: one of the clients is beside it.
const ipvsServed = `cat <<'EOF' | kubectl apply -f -
apiVersion: v1
kind: Pod
metadata: {name: served, labels: {app: served}}
spec:
  nodeName: n1
  containers:
  - name: c
    image: localhost/busybox:1.0
    command: [sh, -c, "mkdir /tmp/w && echo yes >/tmp/w/index.html && exec httpd -f -p 8080 -h /tmp/w"]
---
apiVersion: v1
kind: Service
metadata: {name: served}
spec:
  selector: {app: served}
  ports: [{port: 80, targetPort: 8080}]
EOF
kubectl wait --for=condition=Ready pod/served --timeout=10m`

// ipvsClosed keeps everybody away from it.
const ipvsClosed = `cat <<'EOF' | kubectl apply -f -
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec: {podSelector: {matchLabels: {app: served}}, policyTypes: [Ingress]}
EOF`

// TestIPVS: kube-proxy's ipvs mode, which needs kernel modules that most test machines lack. First its tests of one
// node in the kernel (cmd/kube-proxy), then a cluster: Services of it work, its nodes have virtual servers, and a
// NetworkPolicy holds for what a Service leads to.
func TestIPVS(t *testing.T) {
	m := newMachine(t)
	must(t, m, "modprobe -a ip_vs ip_vs_rr ip_vs_wrr ip_vs_sh nf_conntrack")
	program := filepath.Join(t.TempDir(), "kube-proxy.test")
	if err := run(t.Context(), "go", "test", "-c", "-o", program, "../../cmd/kube-proxy"); err != nil {
		t.Fatal(err)
	}
	within(t, func(ctx context.Context) error { return m.Copy(ctx, program, "/root") })
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	out, err := m.Run(ctx, "cd /root && ./kube-proxy.test -test.v -test.timeout 1h -test.run 'InKernel$/^ipvs$'")
	if err != nil || !strings.Contains(out, "--- PASS: TestClusterIPInKernel/ipvs") {
		t.Errorf("%v\n%s", err, out)
	}

	must(t, m, ipvsConfig)
	must(t, m, makeWeb+" && "+allRun)
	must(t, m, ipvsServed)
	// 10.96.0.1:443 is the Service kubernetes; the table is that of the process's network.
	servers := must(t, m, "cat /proc/$(pgrep -o -x kube-proxy)/net/ip_vs")
	if !strings.Contains(servers, "0A600001:01BB wrr") {
		t.Errorf("no virtual server for the Service kubernetes:\n%s", servers)
	}
	// By the name, so DNS is asked too, which is a Service over UDP; from pods of both nodes.
	if nodes := must(t, m, `kubectl get pods -l app=web -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort`); nodes != "n1\nn2" {
		t.Errorf("the clients are on %q", nodes)
	}
	const ask = "for p in $(kubectl get pods -l app=web -o name); do " +
		`kubectl exec $p -- wget -qO- -T 5 http://served/ 2>&1 | sed -n -e '/^yes$/p' -e 's/^wget: .*\(refused\|timed out\)$/kept out/p'; done`
	eventually(t, m, ask, "yes\nyes")
	must(t, m, ipvsClosed)
	// The policy refuses connections. Behind IPVS the refusal does not reach a client on the same node, which waits.
	eventually(t, m, ask, "kept out\nkept out")
	must(t, m, "kubectl delete networkpolicy closed")
	eventually(t, m, ask, "yes\nyes")
	must(t, m, "bonsai down --name try")
}
