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

// ready returns when all nodes are Ready, as a machine's kubectl says, which may ask any control plane.
func (l *lan) ready(t *testing.T, m *Machine) {
	t.Helper()
	eventually(t, m, "kubectl get nodes --no-headers | grep -cw Ready", fmt.Sprint(len(l.machines)))
	must(t, m, "kubectl wait --for=condition=Ready node --all --timeout=10m")
}

// own is the kubectl that asks the API server of one machine. Without the flag, a balancer chooses one.
func (m *Machine) own() string {
	return "kubectl --server=https://" + Address(m.config.Number) + ":6443 "
}

// cutOff lets no packet of a machine pass until the returned function is called, or the test ends.
func (l *lan) cutOff(t *testing.T, m *Machine) (end func()) {
	t.Helper()
	port := l.network.Port(m.config.Number)
	port.Set(Fault{Down: true})
	end = func() { port.Set(Fault{}) }
	t.Cleanup(end)
	return end
}

// moved returns when a node is lost and the Deployment has all its pods on others, as a machine's kubectl says. The
// Deployment's own status may be that of before.
func (l *lan) moved(t *testing.T, m *Machine) {
	t.Helper()
	eventually(t, m, "kubectl get nodes --no-headers", "NotReady")
	eventually(t, m, `lost=$(kubectl get nodes --no-headers | awk '$2 ~ /^NotReady/ {print $1}')
[ $(echo $lost | wc -w) = 1 ] || { echo "lost: $lost"; exit; }
kubectl get pods -l app=web --no-headers -o custom-columns=N:.spec.nodeName,R:.status.containerStatuses[0].ready,D:.metadata.deletionTimestamp |
  awk -v lost=$lost '{print} $1 != lost && $2 == "true" && $3 == "<none>" {n++} END {if (n >= 3) print "all moved"}'`, "all moved")
	must(t, m, "kubectl rollout status deployment/web --timeout=10m")
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
		must(t, first, "kubectl run outsider --image=localhost/busybox:1.0 -- sleep 1000000 && "+
			"kubectl wait --for=condition=Ready pod/outsider --timeout=10m")
		addresses := strings.Fields(must(t, first, `kubectl get pods -l app=web -o 'jsonpath={.items[*].status.podIP}'`))
		ask := func(a string) string {
			return "kubectl exec outsider -- wget -T 5 -qO- http://" + a + ":8080/name 2>&1; true"
		}
		for _, a := range addresses {
			eventually(t, first, ask(a), "web-")
		}
		must(t, first, `kubectl apply -f - <<'END'
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: none}
spec: {podSelector: {matchLabels: {app: web}}, ingress: []}
END`)
		for _, a := range addresses {
			eventually(t, first, ask(a), "wget: can't connect to remote host ("+a+"): Connection refused")
		}
		must(t, first, "kubectl delete networkpolicy none")
		l.reaches(t)
	})
	t.Run("small packets only", func(t *testing.T) {
		l.all(t, func(m *Machine) { must(t, m, "ip link set eth1 mtu 1400") })
		l.reaches(t)
		l.all(t, func(m *Machine) { must(t, m, "ip link set eth1 mtu 1500") })
	})
	t.Run("slow and lossy", func(t *testing.T) {
		for i := range l.machines {
			l.network.Port(i + 1).Set(Fault{Loss: 0.02, Delay: 20 * time.Millisecond})
			defer l.network.Port(i + 1).Set(Fault{})
		}
		l.reaches(t)
		must(t, first, "kubectl rollout restart deployment/web && kubectl rollout status deployment/web --timeout=10m")
	})
	clients := startClients(t, first)
	t.Run("one at a time", func(t *testing.T) {
		// Each of the two loses its network and its power once, whatever the load's time.
		for i, end := 0, time.Now().Add(*load); i < 4 || time.Now().Before(end); i++ {
			m, what, well := l.machines[1+i%2], "network", func() {}
			if i%4 < 2 {
				well = l.cutOff(t, m)
			} else {
				what, well = "power", func() { start(t, m) }
				cutPower(t, m)
			}
			l.moved(t, first)
			well()
			l.ready(t, first)
			must(t, first, "kubectl rollout restart deployment/web && kubectl rollout status deployment/web --timeout=10m")
			l.reaches(t)
			clientsWrite(t, first)
			t.Logf("turn %d: machine %d lost its %s", i+1, m.config.Number, what)
		}
	})
	t.Run("the first loses power", func(t *testing.T) {
		clientsWrite(t, first)
		cutPower(t, first)
		start(t, first)
		l.ready(t, first)
		l.reaches(t)
		clientsWrite(t, first)
	})
	clients()
}

// TestControlPlanes: three machines have control planes. Whichever loses its power, or its network, the other two go on
// and lose nothing, and it comes back by itself: its own API server has what was written on it last and what
// was written elsewhere meanwhile. Without the others it writes nothing.
func TestControlPlanes(t *testing.T) {
	l := newLAN(t, 3, "--upload-certs")
	must(t, l.machines[0], spread)
	var written []string
	for i, m := range l.machines {
		other := l.machines[(i+1)%len(l.machines)]
		for _, what := range []string{"power", "network"} {
			passed := t.Run(fmt.Sprintf("%s of %d", what, i+1), func(t *testing.T) {
				turn := fmt.Sprintf("%s-%d-", what, i+1)
				last, kept, refused := turn+"last", turn+"kept", turn+"refused"
				must(t, m, m.own()+"create configmap "+last)
				well := func() { start(t, m) }
				if what == "network" {
					well = l.cutOff(t, m)
					out := must(t, m, m.own()+"create configmap "+refused+" 2>&1 && exit; echo refused")
					if !strings.HasSuffix(out, "\nrefused") {
						t.Errorf("a control plane alone wrote: %s", out)
					}
					t.Log(out)
				} else {
					cutPower(t, m)
				}
				// The first writes may meet the machine that is gone.
				eventually(t, other, "kubectl create configmap "+kept+" 2>&1; kubectl get configmap "+kept+" -o name",
					"configmap/"+kept)
				written = append(written, last, kept)
				l.moved(t, other)
				well()
				eventually(t, m, m.own()+"get --raw /readyz/etcd", "ok")
				l.ready(t, m)
				have := must(t, m, m.own()+"get configmaps -o name")
				for _, name := range written {
					if !strings.Contains(have, "configmap/"+name) {
						t.Errorf("%s is lost", name)
					}
				}
				if strings.Contains(have, refused) {
					t.Errorf("%s was written all the same", refused)
				}
				l.reaches(t)
			})
			if !passed {
				return // what comes after stands on it
			}
		}
	}
}
