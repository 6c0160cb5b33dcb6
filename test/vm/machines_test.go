package vm

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

var load = flag.Duration("load", 30*time.Minute, "how long TestMachines lets clients write while it ends one machine at a time")

// lan is a cluster of machines on one network. The first has a control plane, and the others have joined it.
type lan struct {
	network  *Network
	machines []*Machine // the first is number 1
}

// newLAN starts machines at the same time, makes a cluster on the first and lets the others join by the command that
// `bonsai token create` prints with these flags.
func newLAN(t *testing.T, count int, flags string) *lan {
	t.Helper()
	if !*machines {
		t.Skip("SKIPPED: runs with -machines (make e2e-vm)")
	}
	n, err := NewNetwork(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	l := &lan{network: n}
	for i := range count {
		l.machines = append(l.machines, unstarted(t, func(c *Config) { c.Network, c.Number, c.Memory = n, i+1, 3072 }))
	}
	l.all(t, func(m *Machine) { start(t, m); install(t, m) })
	first := l.machines[0]
	must(t, first, "bonsai up --name try --advertise-address "+Address(1))
	join := must(t, first, "bonsai token create --name try --print-join-command "+flags)
	for _, m := range l.machines[1:] {
		must(t, m, join+" --name try && bonsai stop --name try && systemctl enable --now "+unit)
	}
	must(t, first, "bonsai stop --name try && systemctl enable --now "+unit)
	l.ready(t, first)
	return l
}

// all calls f for all machines at the same time. It ends the test if one of the calls has failed it.
func (l *lan) all(t *testing.T, f func(*Machine)) {
	t.Helper()
	var wg sync.WaitGroup
	for _, m := range l.machines {
		wg.Go(func() { f(m) })
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// ready returns when all nodes are Ready, as the control plane of a machine says.
func (l *lan) ready(t *testing.T, m *Machine) {
	t.Helper()
	eventually(t, m, "kubectl get nodes --no-headers | grep -cw Ready", fmt.Sprint(len(l.machines)))
	must(t, m, "kubectl wait --for=condition=Ready node --all --timeout=10m")
}

// spread is a Deployment with a pod on each machine, which leaves a node that is gone after twenty seconds, and its
// Service.
const spread = `kubectl apply -f - <<'END'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      tolerations:
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 20}
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 20}
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
      containers:
      - name: c
        image: localhost/busybox:1.0
        command: [sh, -c, "mkdir /tmp/www; hostname >/tmp/www/name; dd if=/dev/zero of=/tmp/www/large bs=1M count=4; exec httpd -f -p 8080 -h /tmp/www"]
        readinessProbe: {httpGet: {port: 8080, path: /name}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
END
kubectl rollout status deployment/web --timeout=10m`

// reaches returns when every pod of the Deployment reaches every other, the Service by its name, and a large answer.
func (l *lan) reaches(t *testing.T) {
	t.Helper()
	eventually(t, l.machines[0], `set -e
addresses=$(kubectl get pods -l app=web --field-selector status.phase=Running -o 'jsonpath={.items[*].status.podIP}')
pods=$(kubectl get pods -l app=web --field-selector status.phase=Running -o name)
[ $(echo "$pods" | wc -l) -ge 3 ]
for p in $pods; do
  for a in $addresses; do kubectl exec $p -- wget -T 20 -qO /dev/null http://$a:8080/large; done
  kubectl exec $p -- wget -T 20 -qO- http://web/name
done
echo all reached`, "all reached")
}

// TestMachines: three machines are one cluster, whatever becomes of one of them or of the network.
func TestMachines(t *testing.T) {
	l := newLAN(t, 3, "")
	first := l.machines[0]
	must(t, first, spread)
	l.reaches(t)
	if nodes := must(t, first, `kubectl get pods -l app=web -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | wc -l`); nodes != "3" {
		t.Errorf("the pods are on %s nodes", nodes)
	}

	t.Run("load balancer from each machine", func(t *testing.T) {
		eventually(t, first, `kubectl get service web -o 'jsonpath={.status.loadBalancer.ingress[0].ip}'`, ".")
		address := must(t, first, `kubectl get service web -o 'jsonpath={.status.loadBalancer.ingress[0].ip}'`)
		for _, m := range l.machines {
			eventually(t, m, "busybox wget -qO- http://"+address+"/name", "web-")
		}
	})
	t.Run("policy across machines", func(t *testing.T) {
		must(t, first, `kubectl apply -f - <<'END'
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: none}
spec: {podSelector: {matchLabels: {app: web}}, ingress: []}
END
kubectl run outsider --image=localhost/busybox:1.0 -- sleep 1000000 && kubectl wait --for=condition=Ready pod/outsider --timeout=10m`)
		for _, a := range strings.Fields(must(t, first, `kubectl get pods -l app=web -o 'jsonpath={.items[*].status.podIP}'`)) {
			eventually(t, first, "kubectl exec outsider -- wget -T 5 -qO- http://"+a+":8080/name 2>&1 || true", "refused")
		}
		must(t, first, "kubectl delete networkpolicy none")
		l.reaches(t)
	})
	t.Run("small packets only", func(t *testing.T) {
		l.all(t, func(m *Machine) { must(t, m, "ip link set eth1 mtu 1400") })
		l.reaches(t)
	})
	t.Run("slow and lossy", func(t *testing.T) {
		for i := range l.machines {
			l.network.Port(i + 1).Set(Fault{Loss: 0.02, Delay: 20 * time.Millisecond})
		}
		l.reaches(t)
		must(t, first, "kubectl rollout restart deployment/web && kubectl rollout status deployment/web --timeout=10m")
		for i := range l.machines {
			l.network.Port(i + 1).Set(Fault{})
		}
	})
	t.Run("one at a time", func(t *testing.T) {
		clients := startClients(t, first)
		for i, end := 0, time.Now().Add(*load); time.Now().Before(end); i++ {
			number := 2 + i%2
			m := l.machines[number-1]
			if i%4 < 2 {
				l.network.Port(number).Set(Fault{Down: true})
			} else {
				cutPower(t, m)
			}
			eventually(t, first, "kubectl get nodes --no-headers", "NotReady")
			must(t, first, "kubectl rollout status deployment/web --timeout=10m")
			if i%4 < 2 {
				l.network.Port(number).Set(Fault{})
			} else {
				start(t, m)
			}
			l.ready(t, first)
			must(t, first, "kubectl rollout restart deployment/web && kubectl rollout status deployment/web --timeout=10m")
			l.reaches(t)
		}
		clients()
	})
	t.Run("the first loses power", func(t *testing.T) {
		cutPower(t, first)
		start(t, first)
		l.ready(t, first)
		l.reaches(t)
	})
}

// TestControlPlanes: three machines have control planes. Whichever loses its power, or its network, the other two go on
// and lose nothing, and it comes back by itself.
func TestControlPlanes(t *testing.T) {
	l := newLAN(t, 3, "--upload-certs")
	must(t, l.machines[0], spread)
	written := 0
	for i, m := range l.machines {
		other := l.machines[(i+1)%len(l.machines)]
		for name, fault := range map[string]struct{ begin, end func(*testing.T) }{
			"power": {func(t *testing.T) { cutPower(t, m) }, func(t *testing.T) { start(t, m) }},
			"network": {func(*testing.T) { l.network.Port(i + 1).Set(Fault{Down: true}) },
				func(*testing.T) { l.network.Port(i + 1).Set(Fault{}) }},
		} {
			t.Run(fmt.Sprintf("%s of %d", name, i+1), func(t *testing.T) {
				fault.begin(t)
				// The first writes may meet the machine that is gone.
				kept := fmt.Sprintf("kept-%d", written)
				eventually(t, other, "kubectl create configmap "+kept+" 2>&1; kubectl get configmap "+kept+" -o name",
					"configmap/"+kept)
				written++
				eventually(t, other, "kubectl get nodes --no-headers", "NotReady")
				must(t, other, "kubectl rollout status deployment/web --timeout=10m")
				fault.end(t)
				l.ready(t, m)
				for n := range written {
					must(t, m, fmt.Sprintf("kubectl get configmap kept-%d", n))
				}
				l.reaches(t)
			})
		}
	}
}
