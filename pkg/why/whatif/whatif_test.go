package whatif

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"bonsai/pkg/why"
	"bonsai/pkg/why/whytest"
)

func node(name, cpu string) string {
	return fmt.Sprintf(`
---
{apiVersion: v1, kind: Node, metadata: {name: %[1]s, labels: {kubernetes.io/hostname: %[1]s}}, status: {allocatable: {cpu: "%[2]s", memory: 8Gi, pods: "20"}}}`,
		name, cpu)
}

// running is a ready pod of the ReplicaSet web-1, of the Deployment web; app is its label.
func running(name, on, cpu, app string) string {
	return fmt.Sprintf(`
---
{apiVersion: v1, kind: Pod, metadata: {name: %[1]s, namespace: shop, uid: %[1]s, labels: {app: %[4]s}, creationTimestamp: "2026-01-02T11:00:00Z",
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: r, controller: true}]},
 spec: {nodeName: %[2]s, schedulerName: default-scheduler, containers: [{name: c, resources: {requests: {cpu: %[3]s}}}]}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`,
		name, on, cpu, app)
}

const bare = `
---
{apiVersion: v1, kind: Pod, metadata: {name: alone, namespace: shop, uid: alone}, spec: {nodeName: n1, containers: [{name: c}]}, status: {phase: Running}}`

const resident1 = `
---
{apiVersion: v1, kind: Pod, metadata: {name: agent, namespace: shop, uid: agent, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, uid: a, controller: true}]}, spec: {nodeName: n1, containers: [{name: c}]}, status: {phase: Running}}`

const deployment = `
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: d}, spec: {replicas: 2, template: {metadata: {labels: {app: web}}, spec: {schedulerName: default-scheduler, containers: [{name: c, image: old, resources: {requests: {cpu: 1}}}]}}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, namespace: shop, uid: r, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]}, spec: {replicas: 2, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: []}}}}`

func budget(allowed, healthy, desired int) string {
	return fmt.Sprintf(`
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: shop}, spec: {selector: {matchLabels: {app: web}}}, status: {disruptionsAllowed: %d, currentHealthy: %d, desiredHealthy: %d, expectedPods: %[2]d}}`,
		allowed, healthy, desired)
}

// namespace is that of the pods, with what its pods need there.
const namespace = `
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop}}`

func foresee(t *testing.T, world string, ch Change, random Random) (Result, error) {
	t.Helper()
	ch.Namespace = "shop"
	w := why.NewWorld(whytest.Parse(t, world+namespace))
	return Foresee(t.Context(), why.NewCase(w, whytest.Now, why.Explainers{}), ch, random)
}

func TestForesee(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ world, change, file, want string }{
		"scale up": {node("n1", "4") + node("n2", "2") + deployment + running("a", "n1", "1", "web") +
			running("b", "n2", "1", "web"),
			"scale deployment/web --replicas=8", "",
			`If you scale deployment/web to 8, 4 pods would be placed, and 2 pods would find no node.
2 pods of deployment/web would find no node: “0/2 nodes are available: 2 Insufficient cpu.”. Each asks for cpu=1.
3 pods would be placed on node n1: 3 of deployment/web.
1 pod would be placed on node n2: 1 of deployment/web.
`},
		"scale down": {node("n1", "4") + deployment + running("a", "n1", "1", "web") + running("b", "n1", "1", "web"),
			"scale deploy web --replicas 1", "",
			`If you scale deploy/web to 1, 0 pods would be placed, and 0 pods would find no node.
1 pod would end: 1 on node n1.
`},
		"drain": {node("n1", "4") + node("n2", "1") + deployment + running("a", "n1", "1", "web") +
			running("b", "n1", "1", "web") + bare + resident1,
			"drain n1 --ignore-daemonsets", "",
			`If you drain node n1, 1 pod would be placed, and 1 pod would find no node.
1 pod of replicaset/web-1 would find no node: “0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.”. Each asks for cpu=1.
1 pod would end and not be made again, since no controller has made it: shop/alone.
1 pod would be placed on node n2: 1 of replicaset/web-1.
2 pods would end: 2 on node n1.
`},
		"drain against a budget that lets one go after the other": {
			node("n1", "4") + node("n2", "4") + deployment + running("a", "n1", "1", "web") +
				running("b", "n1", "1", "web") + budget(1, 2, 1),
			"kubectl drain n1", "",
			`If you drain node n1, 2 pods would be placed, and 0 pods would find no node.
2 pods would be placed on node n2: 2 of replicaset/web-1.
2 pods would end: 2 on node n1.
`},
		"drain against a budget that forbids": {
			node("n1", "4") + node("n2", "4") + deployment + running("a", "n1", "1", "web") +
				running("b", "n1", "1", "web") + budget(0, 2, 2),
			"drain n1", "",
			`If you drain node n1, 0 pods would be placed, and 0 pods would find no node.
PodDisruptionBudget shop/web would forbid a part of it. It allows no disruption, so 2 pods (a and b) would stay on node n1, and the drain would not end.
`},
		"delete a node": {
			node("n1", "4") + node("n2", "4") + deployment + running("a", "n1", "1", "web") +
				running("b", "n1", "1", "web") + budget(1, 2, 1),
			"delete node n1", "",
			`If you delete node/n1, 2 pods would be placed, and 0 pods would find no node.
PodDisruptionBudget shop/web would be broken. It would lose 2 pods (a and b) at once, and have fewer than it wants.
2 pods would be placed on node n2: 2 of replicaset/web-1.
2 pods would end: 2 on node n1.
`},
		"cordon": {node("n1", "4") + node("n2", "1") + deployment + running("a", "n1", "1", "web") +
			running("b", "", "2", "web"),
			"cordon n1", "",
			`If you cordon node n1, 0 pods would be placed, and 0 pods would find no node.
1 pod of replicaset/web-1 would still find no node: “0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.”. Each asks for cpu=2.
`},
		"another scheduler's pod": {
			node("n1", "4") + strings.ReplaceAll(running("b", "", "1", "web"), "schedulerName: default-scheduler", "schedulerName: tetris"),
			"uncordon n1", "",
			`If you uncordon node n1, 0 pods would be placed, and 0 pods would find no node.
1 pod of replicaset/web-1 would still find no node: “the scheduler tetris has not looked at it”. Each asks for cpu=1.
`},
		"a file with more room": {node("n1", "1") + running("b", "", "2", "web"), "", `
{apiVersion: v1, kind: Node, metadata: {name: n9}, status: {allocatable: {cpu: "2", pods: "9"}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: shop}}`,
			`If you apply node/n9, configmap/x, 1 pod would be placed, and 0 pods would find no node.
1 pod would be placed on node n9: 1 of replicaset/web-1.
`},
		"a file that asks for too much": {node("n1", "4") + deployment + running("a", "n1", "1", "web") +
			running("b", "n1", "1", "web"), "", `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: new, resources: {requests: {cpu: 3}}}]}}}}`,
			`If you apply deployment/web, 0 pods would be placed, and 1 pod would find no node.
1 pod of deployment/web would find no node: “0/1 nodes are available: 1 Insufficient cpu.”. Each asks for cpu=3.
`},
		"a file that rolls out": {node("n1", "4") + deployment + running("a", "n1", "1", "web") +
			running("b", "n1", "1", "web"), "", `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: new, resources: {requests: {cpu: 1500m}}}]}}}}`,
			`If you apply deployment/web, 2 pods would be placed, and 0 pods would find no node.
2 pods would be placed on node n1: 2 of deployment/web.
2 pods would end: 2 on node n1.
`},
		"a file that changes nothing": {node("n1", "4") + deployment + running("a", "n1", "1", "web") +
			running("b", "n1", "1", "web"), "", `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {template: {spec: {containers: [{name: c, image: old}]}}}}`,
			"If you apply deployment/web, 0 pods would be placed, and 0 pods would find no node.\n"},
		"a higher priority": {node("n1", "1") + running("a", "n1", "1", "web"), "", `
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent}, value: 9}
---
{apiVersion: v1, kind: Pod, metadata: {name: urgent, namespace: shop}, spec: {priorityClassName: urgent, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}`,
			`If you apply priorityclass/urgent, pod/urgent, 1 pod would be placed, and 1 pod would find no node.
1 pod of replicaset/web-1 would find no node: “0/1 nodes are available: 1 Insufficient cpu.”. Each asks for cpu=1.
For pod urgent-new-1, which has a higher priority, the scheduler would evict shop/a from node n1.
1 pod would be placed on node n1: 1 of pod/urgent.
1 pod would end: 1 on node n1.
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ch := Change{Verb: Apply}
			if c.file == "" {
				var err error
				if ch, err = Parse(c.change); err != nil {
					t.Fatal(err)
				}
			} else {
				ch.Objects = whytest.Parse(t, c.file).Objects
			}
			r, err := foresee(t, c.world, ch, nil)
			if err != nil {
				t.Fatal(err)
			}
			a := r.Answer()
			got := a.State + "\n"
			for _, cause := range a.Causes {
				got += cause.Text + "\n"
			}
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                     "unknown change",
		"drain":                                "unknown change",
		"drain a b":                            "unknown change",
		"explode n1":                           "unknown change",
		"scale deployment/web":                 "unknown change",
		"scale deployment/web --replicas=x":    "must be a number from 0 to 5000",
		"scale deployment/web --replicas=5001": "must be a number from 0 to 5000",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for change, want := range map[string]string{
		"drain n9":                         "there is no node n9",
		"delete node n9":                   "there is no node n9",
		"delete configmap x":               "cannot be foreseen",
		"scale configmap/x --replicas=1":   "only deployments",
		"scale deployment/no --replicas=1": "there is no deployment/no in namespace shop",
	} {
		ch, err := Parse(change)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := foresee(t, node("n1", "1"), ch, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", change, err, want)
		}
	}
}

// TestOutcomeIsTheSchedulers: on random clusters, what is foreseen is what the incremental decider of the scheduler's
// loop does, pod by pod: the same nodes are best, and the same pods find none. Which of equal nodes is taken is chance,
// so the decider is led along the foreseen ones.
func TestOutcomeIsTheSchedulers(t *testing.T) {
	t.Parallel()
	placed, waiting := 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		world, replicas := randomCluster(r)
		change := Change{Verb: Scale, Kind: "deployment", Name: "web", Replicas: replicas}
		result, err := foresee(t, world, change, r.IntN)
		if err != nil {
			t.Fatal(err)
		}
		o := newOracle(t, world, r.IntN)
		for _, p := range result.Placed {
			best := o.best(p)
			if !slices.Equal(best, p.Nodes) {
				t.Fatalf("seed %d: pod %s: foreseen %v, the scheduler's best are %v\n%s", seed, p.Pod.Name, p.Nodes,
					best, world)
			}
			o.place(p)
		}
		for _, w := range result.Waiting {
			if best := o.best(Placed{Pod: w.Pod, New: w.New}); best != nil {
				t.Fatalf("seed %d: pod %s would wait, and the scheduler has %v\n%s", seed, w.Pod.Name, best, world)
			}
		}
		placed, waiting = placed+len(result.Placed), waiting+len(result.Waiting)
	}
	if placed < 100 || waiting < 40 {
		t.Errorf("%d pods were placed and %d waited: too few to mean much", placed, waiting)
	}
}
