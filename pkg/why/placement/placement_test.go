package placement

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"bonsai/pkg/why"
	"bonsai/pkg/why/simulate"
	"bonsai/pkg/why/whytest"
)

// nodeText writes a node: its name, CPU, and more fields of its spec; labels are name=value pairs.
func nodeText(name, cpu, spec string, labels ...string) string {
	list := []string{"kubernetes.io/hostname: " + name}
	for _, l := range labels {
		list = append(list, strings.Replace(l, "=", ": ", 1))
	}
	return fmt.Sprintf(`
---
{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {%s}}, spec: {%s},
 status: {allocatable: {cpu: "%s", memory: 8Gi, pods: "10"}, conditions: [{type: Ready, status: "True"}]}}`,
		name, strings.Join(list, ", "), spec, cpu)
}

// runs writes a pod that runs on a node.
func runs(name, node, cpu, more string) string {
	return fmt.Sprintf(`
---
{apiVersion: v1, kind: Pod, metadata: {name: %[1]s, namespace: shop, uid: %[1]s, labels: {app: %[1]s},
  creationTimestamp: "2026-01-02T11:00:00Z",
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: j, controller: true}]},
 spec: {nodeName: %[2]s, schedulerName: default-scheduler, containers: [{name: c, resources: {requests: {cpu: %[3]s}}}]%[4]s}, status: {phase: Running}}`,
		name, node, cpu, more)
}

// waits writes the pod web of the Deployment web, with more fields of its spec. Both have the same spec.
func waits(cpu, more string) string {
	spec := fmt.Sprintf(`{schedulerName: default-scheduler, containers: [{name: app, resources: {requests: {cpu: "%s"}}}]%s}`,
		cpu, more)
	return `
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: d}, spec: {template: {spec: ` + spec + `}}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, namespace: shop, uid: r, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]}, spec: {template: {spec: ` + spec + `}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, uid: w, labels: {app: web},
  creationTimestamp: "2026-01-02T11:57:00Z",
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-1, uid: r, controller: true}]},
 spec: ` + spec + `, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: said, lastTransitionTime: "2026-01-02T11:58:00Z"}]}}`
}

var web = why.Object{Kind: "Pod", Namespace: "shop", Name: "web"}

func ask(t *testing.T, world string, o why.Object, hidden ...string) why.Answer {
	t.Helper()
	s := whytest.Parse(t, world)
	s.Hidden = hidden
	return whytest.Ask(t, s, why.Explainers{
		Kinds: map[why.GroupKind]why.Explainer{{Kind: "Pod"}: why.ExplainerFunc(Explain)},
		Other: why.ExplainerFunc(func(_ context.Context, _ *why.Case, o why.Object) (why.Answer, error) {
			return why.Answer{Subject: o, Causes: []why.Cause{{Code: "Asked", Text: "About " + o.String()}}}, nil
		})}, o)
}

// shown is the first cause with its fixes, and the codes of the others.
func shown(a why.Answer) string {
	var b strings.Builder
	for i, c := range a.Causes {
		if i > 0 {
			fmt.Fprintf(&b, "+ %s\n", c.Code)
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", c.Code, c.Text)
		for _, f := range c.Fixes {
			fmt.Fprintf(&b, "- %s\n  %s\n", f.Text, f.Command)
		}
		for _, c := range c.Because {
			fmt.Fprintf(&b, "because %s: %s\n", c.Code, c.Text)
		}
	}
	return b.String()
}

const controlPlaneTaint = `taints: [{key: node-role.kubernetes.io/control-plane, effect: NoSchedule}]`

func TestWaiting(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ world, want string }{
		"too little CPU": {
			nodeText("n1", "4", controlPlaneTaint) + nodeText("n2", "2", "") + nodeText("n3", "2", "") +
				runs("a", "n2", "300m", "") + runs("b", "n3", "1500m", "") + waits("2", ""),
			`InsufficientResource: The pod asks for 2 CPU, which is more than 2 of 3 nodes (n2 and n3) have left: n2 has 1700m of 2 left and n3 has 500m of 2 left.
- Ask for 300m less CPU; the pod then fits on node n2.
  kubectl -n shop set resources deployment web -c app --requests=cpu=1700m
- Move pod shop/a, which asks for 300m CPU, from n2 to another node: it fits on n3; the pod then fits on node n2.
  kubectl -n shop delete pod a
because Reserved: Pods on node n2 ask for 300m CPU: shop/a for 300m.
+ UntoleratedTaint
`},
		"too large for all": {
			nodeText("n1", "2", "") + nodeText("n2", "4", "") + waits("64", ""),
			`InsufficientResource: The pod asks for 64 CPU, which is more than any of all 2 nodes (n1 and n2) has: the largest, n2, has 4.
- Add a node with 64 free CPU.
  
`},
		"taint": {
			nodeText("n1", "4", controlPlaneTaint) + nodeText("n2", "4", `taints: [{key: dedicated, value: gpu, effect: NoSchedule}]`) +
				waits("1", ""),
			`UntoleratedTaint: Node n2 has the taint dedicated=gpu:NoSchedule, which the pod does not tolerate.
- Tolerate the taint dedicated=gpu:NoSchedule; the pod then fits on node n2.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"add","path":"/spec/template/spec/tolerations","value":[{"key":"dedicated","operator":"Equal","value":"gpu","effect":"NoSchedule"}]}]'
- Remove the taint dedicated=gpu:NoSchedule from node n2; the pod then fits on node n2.
  kubectl taint nodes n2 dedicated=gpu:NoSchedule-
+ UntoleratedTaint
`},
		"cordoned": {
			nodeText("n1", "4", `unschedulable: true, taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]`) + waits("1", ""),
			`Cordoned: The only node, n1, is cordoned: no new pods are placed there.
- Uncordon node n1; the pod then fits on node n1.
  kubectl uncordon n1
`},
		"not ready": {
			nodeText("n1", "4", `taints: [{key: node.kubernetes.io/unreachable, effect: NoSchedule}]`) + waits("1", ""),
			`NodeNotReady: The only node, n1, is not ready: no new pods are placed there.
because Asked: About Node n1
`},
		"typing error in the selector": {
			nodeText("n1", "4", "", "disktype=ssd") + nodeText("n2", "4", "") + waits("1", `, nodeSelector: {disktype: sdd}`),
			`NodeSelector: Neither node (n1, n2) has the labels that the pod's nodeSelector asks for: disktype=sdd (nodes have ssd).
- Ask for disktype=ssd instead of disktype=sdd in the nodeSelector; the pod then fits on node n1.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"replace","path":"/spec/template/spec/nodeSelector/disktype","value":"ssd"}]'
- Give node n1 the label disktype=sdd; the pod then fits on node n1.
  kubectl label node n1 disktype=sdd --overwrite
- Drop disktype=sdd from the nodeSelector; the pod then fits on node n1.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"remove","path":"/spec/template/spec/nodeSelector/disktype"}]'
`},
		"the one node that it selects is full": {
			nodeText("n1", "2", "", "disk=ssd") + nodeText("n2", "4", "") + nodeText("n3", "4", "") +
				runs("a", "n1", "1", "") + waits("1500m", `, nodeSelector: {disk: ssd}`),
			`InsufficientResource: The pod asks for 1500m CPU, which is more than node n1 has left: n1 has 1 of 2 left.
- Ask for 500m less CPU; the pod then fits on node n1.
  kubectl -n shop set resources deployment web -c app --requests=cpu=1
- Move pod shop/a, which asks for 1 CPU, from n1 to another node: it fits on n2; the pod then fits on node n1.
  kubectl -n shop delete pod a
because Reserved: Pods on node n1 ask for 1 CPU: shop/a for 1.
+ NodeSelector
`},
		"node affinity": {
			nodeText("n1", "4", "", "zone=a") + waits("1", `, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [b, c]}]}]}}}`),
			`NodeAffinity: The only node, n1, does not match the pod's required node affinity: zone In b,c.
- Drop the required node affinity; the pod then fits on node n1.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"remove","path":"/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution"}]'
`},
		"host port": {
			nodeText("n1", "4", "") + runs("a", "n1", "1", `, initContainers: [{name: i, restartPolicy: Always, ports: [{hostPort: 80}]}]`) +
				strings.ReplaceAll(waits("1", ""), "{name: app,",
					"{name: app, ports: [{containerPort: 80, hostPort: 80}],"),
			`HostPortTaken: A host port that the pod asks for is taken: pod shop/a has port 80/TCP on n1.
- Ask for no host port; the pod then fits on node n1.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"remove","path":"/spec/template/spec/containers/0/ports/0/hostPort"}]'
- Delete pod shop/a on n1, which asks for 1 CPU; the pod then fits on node n1.
  kubectl -n shop delete pod a
`},
		"anti-affinity": {
			nodeText("n1", "4", "") + runs("a", "n1", "1", "") +
				waits("1", `, affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: a}}}]}}`),
			`PodAntiAffinityConflict: The only node, n1, is out by the pod's required anti-affinity to pods that run: shop/a on n1.
- Drop the required pod anti-affinity; the pod then fits on node n1.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"remove","path":"/spec/template/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution"}]'
- Delete pod shop/a on n1, which asks for 1 CPU; the pod then fits on node n1.
  kubectl -n shop delete pod a
`},
		"affinity": {
			nodeText("n1", "4", "") +
				waits("1", `, affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: db}}}]}}`),
			`PodAffinityUnsatisfied: The only node, n1, does not satisfy the pod's required affinity: it must run in a kubernetes.io/hostname with a pod that matches app=db, and no pod on a node does.
- Drop the required pod affinity; the pod then fits on node n1.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"remove","path":"/spec/template/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution"}]'
`},
		"a rack that stays empty among nodes that are meant for others": {
			nodeText("n1", "4", "", "rack=a", "pool=web") + nodeText("n2", "4", `taints: [{key: dedicated, value: db, effect: NoSchedule}]`, "rack=b", "pool=web") +
				nodeText("n3", "4", "") + nodeText("n4", "4", "") +
				strings.ReplaceAll(runs("a", "n1", "1", ""), "app: a", "app: web") +
				waits("1", `, nodeSelector: {pool: web}, topologySpreadConstraints: [{topologyKey: rack, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]`),
			`TopologySpreadViolated: One more pod on n1 would spread the pods too unevenly by rack, which may differ by 1: a has 1 and b has 0.
- Leave nodes with taints that the pod does not tolerate out of the spread over rack (nodeTaintsPolicy: Honor); the pod then fits on node n1.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"add","path":"/spec/template/spec/topologySpreadConstraints/0/nodeTaintsPolicy","value":"Honor"}]'
- Let the spread over rack be a wish (whenUnsatisfiable: ScheduleAnyway); the pod then fits on node n1.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"replace","path":"/spec/template/spec/topologySpreadConstraints/0/whenUnsatisfiable","value":"ScheduleAnyway"}]'
- Move pod shop/a, which asks for 1 CPU, from n1 to another node: it fits on n3; the pod then fits on node n1.
  kubectl -n shop delete pod a
because UntoleratedTaint: Node n2 has the taint dedicated=db:NoSchedule, which the pod does not tolerate.
+ NodeSelector
+ TopologySpreadViolated
`},
		"spread over a node that takes no pods": {
			nodeText("n1", "4", controlPlaneTaint) + nodeText("n2", "4", "") +
				strings.ReplaceAll(runs("a", "n2", "1", ""), "app: a", "app: web") +
				waits("1", `, topologySpreadConstraints: [{topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]`),
			`TopologySpreadViolated: One more pod on n2 would spread the pods too unevenly by kubernetes.io/hostname, which may differ by 1: n1 has 0 and n2 has 1.
- Leave nodes with taints that the pod does not tolerate out of the spread over kubernetes.io/hostname (nodeTaintsPolicy: Honor); the pod then fits on node n2.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"add","path":"/spec/template/spec/topologySpreadConstraints/0/nodeTaintsPolicy","value":"Honor"}]'
- Let the spread over kubernetes.io/hostname be a wish (whenUnsatisfiable: ScheduleAnyway); the pod then fits on node n2.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"replace","path":"/spec/template/spec/topologySpreadConstraints/0/whenUnsatisfiable","value":"ScheduleAnyway"}]'
- Delete pod shop/a on n2, which asks for 1 CPU; the pod then fits on node n2.
  kubectl -n shop delete pod a
because UntoleratedTaint: Node n1 has the taint node-role.kubernetes.io/control-plane:NoSchedule, which the pod does not tolerate.
`},
		"one zone is full, and the other has too many": {
			nodeText("n1", "4", "", "zone=a") + nodeText("n2", "1", "", "zone=b") + runs("b", "n2", "1", "") +
				strings.ReplaceAll(runs("a", "n1", "1", ""), "app: a", "app: web") +
				waits("1", `, topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}]`),
			`TopologySpreadViolated: One more pod on n1 would spread the pods too unevenly by zone, which may differ by 1: a has 1 and b has 0.
- Let the spread over zone be a wish (whenUnsatisfiable: ScheduleAnyway); the pod then fits on node n1.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"replace","path":"/spec/template/spec/topologySpreadConstraints/0/whenUnsatisfiable","value":"ScheduleAnyway"}]'
- Delete pod shop/a on n1, which asks for 1 CPU; the pod then fits on node n1.
  kubectl -n shop delete pod a
because InsufficientResource: The pod asks for 1 CPU, which is more than node n2 has left: n2 has 0 of 1 left.
`},
		"the one node that it selects has a taint": {
			nodeText("n1", "4", `taints: [{key: dedicated, value: db, effect: NoSchedule}]`, "pool=db") + nodeText("n2", "4", "") +
				nodeText("n3", "4", "") + waits("1", `, nodeSelector: {pool: db}`),
			`UntoleratedTaint: Node n1 has the taint dedicated=db:NoSchedule, which the pod does not tolerate.
- Tolerate the taint dedicated=db:NoSchedule; the pod then fits on node n1.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"add","path":"/spec/template/spec/tolerations","value":[{"key":"dedicated","operator":"Equal","value":"db","effect":"NoSchedule"}]}]'
- Remove the taint dedicated=db:NoSchedule from node n1; the pod then fits on node n1.
  kubectl taint nodes n1 dedicated=db:NoSchedule-
+ NodeSelector
`},
		"two changes together": {
			nodeText("n1", "2", `taints: [{key: dedicated, value: gpu, effect: NoSchedule}]`) + waits("3", ""),
			`UntoleratedTaint: The only node, n1, has the taint dedicated=gpu:NoSchedule, which the pod does not tolerate.
- Tolerate the taint dedicated=gpu:NoSchedule, and ask for 1 less CPU; the pod then fits on node n1.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"add","path":"/spec/template/spec/tolerations","value":[{"key":"dedicated","operator":"Equal","value":"gpu","effect":"NoSchedule"}]}]' && kubectl -n shop set resources deployment web -c app --requests=cpu=2
+ InsufficientResource
`},
		"another node takes the pod in the way": {
			nodeText("n1", "2", "", "disk=ssd") + nodeText("n2", "1", "") + runs("a", "n1", "800m", "") +
				waits("1900m", `, nodeSelector: {disk: ssd}`),
			`InsufficientResource: The pod asks for 1900m CPU, which is more than node n1 has left: n1 has 1200m of 2 left.
- Ask for 700m less CPU; the pod then fits on node n1.
  kubectl -n shop set resources deployment web -c app --requests=cpu=1200m
- Move pod shop/a, which asks for 800m CPU, from n1 to another node: it fits on n2; the pod then fits on node n1.
  kubectl -n shop delete pod a
because Reserved: Pods on node n1 ask for 800m CPU: shop/a for 800m.
+ NodeSelector
`},
		"gates": {
			nodeText("n1", "4", "") + waits("1", `, schedulingGates: [{name: example.com/quota}]`),
			`SchedulingGated: The pod has the scheduling gate example.com/quota: no scheduler looks at it before whoever set them removes them.
- Look at that controller: does it run, and what does it wait for?
  
- Remove the gates by hand, if no controller will.
  kubectl -n shop patch pod web --type=json -p '[{"op":"remove","path":"/spec/schedulingGates"}]'
`},
		"no nodes": {waits("1", ""), "NoNodes: The cluster has no nodes.\n- Add a node.\n  \n"},
		"no claim": {
			nodeText("n1", "4", "") + waits("1", `, volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]`),
			`ClaimMissing: The pod uses the claim data, which does not exist in namespace shop.
because Asked: About PersistentVolumeClaim shop/data
`},
		"unbound claim": {
			nodeText("n1", "4", "") + waits("1", `, volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]`) + `
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop}, spec: {storageClassName: none}, status: {phase: Pending}}`,
			`ClaimNotBound: The pod waits for the claim data, which has no volume yet.
because Asked: About PersistentVolumeClaim shop/data
`},
		"volume elsewhere": {
			nodeText("n1", "4", "", "zone=a") + waits("1", `, volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]`) + `
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop,
	annotations: {pv.kubernetes.io/bind-completed: "yes"}}, spec: {volumeName: pv1}, status: {phase: Bound}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv1}, spec: {claimRef: {namespace: shop, name: data}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [b]}]}]}}}, status: {phase: Bound}}`,
			`VolumeNodeConflict: The only node, n1, cannot reach the pod's volumes (node(s) didn't match PersistentVolume's node affinity): claim data has volume pv1 for nodes with zone In b.
`},
		"a higher priority that may not evict": {
			nodeText("n1", "2", "") + runs("a", "n1", "1", "") + waits("2", ", priority: 7, preemptionPolicy: Never"),
			`InsufficientResource: The pod asks for 2 CPU, which is more than the only node, n1, has left: n1 has 1 of 2 left.
- Ask for 1 less CPU; the pod then fits on node n1.
  kubectl -n shop set resources deployment web -c app --requests=cpu=1
- Delete pod shop/a on n1, which asks for 1 CPU; the pod then fits on node n1.
  kubectl -n shop delete pod a
because Reserved: Pods on node n1 ask for 1 CPU: shop/a for 1.
because PreemptionNever: There are pods of lower priority. The scheduler evicts none of them for this one, since its preemptionPolicy is Never.
`},
		"a request that a LimitRange makes": {
			nodeText("n1", "2", "") + strings.ReplaceAll(waits("56", ""), "uid: w,",
				`uid: w, annotations: {kubernetes.io/limit-ranger: "LimitRanger plugin set: cpu request for container app"},`) + `
---
{apiVersion: v1, kind: LimitRange, metadata: {name: defaults, namespace: shop}, spec: {limits: [{type: Container, defaultRequest: {cpu: 56}}]}}`,
			`InsufficientResource: The pod asks for 56 CPU, which is more than the only node, n1, has altogether: the largest, n1, has 2.
- Add a node with 56 free CPU.
  
because LimitRangeDefault: The pod itself does not say how much CPU it asks for; the LimitRange defaults gives each container 56.
`},
		"a volume that one pod has alone": {
			nodeText("n1", "4", "") + runs("a", "n1", "1", `, volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]`) +
				waits("1", `, volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]`) + `
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop,
	annotations: {pv.kubernetes.io/bind-completed: "yes"}}, spec: {volumeName: pv1, accessModes: [ReadWriteOncePod]},
		status: {phase: Bound}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv1}, spec: {claimRef: {namespace: shop, name: data}}, status: {phase: Bound}}`,
			`VolumeInUse: The only node, n1, cannot use a volume that another pod has alone (node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod): claim data is used by pod shop/a on n1.
- Delete pod shop/a on n1, which asks for 1 CPU; the pod then fits on node n1.
  kubectl -n shop delete pod a
`},
		"a claim on devices that is missing": {
			nodeText("n1", "4", "") + waits("1", `, resourceClaims: [{name: gpu, resourceClaimName: big}]`),
			`DeviceUnavailable: The pod's claims on devices cannot be served: “could not find ResourceClaim "shop/big"”.
because Asked: About ResourceClaim shop/big
`},
		"a resource that no node has": {
			nodeText("n1", "4", "") + strings.ReplaceAll(waits("1", ""), `requests: {cpu: "1"}`, `requests: {cpu: "1", example.com/gpu: 1}`),
			`InsufficientResource: The pod asks for 1 example.com/gpu, and the only node, n1, has none at all.
- Add a node with 1 free example.com/gpu.
  
`},
		"another scheduler's reason": {
			nodeText("n1", "1", "") + strings.ReplaceAll(waits("2", ""), "message: said",
				`message: "0/1 nodes are available: 1 node(s) lack the moon."`),
			"SchedulerRefusal: The cluster's scheduler has a reason of its own: “node(s) lack the moon”.\n+ InsufficientResource\n"},
		"it fits": {
			nodeText("n1", "4", "") + waits("1", ""),
			"SchedulerHasNotTried: The pod fits on node n1 now, by the rules of the default scheduler. Its scheduler sees it differently, or has not tried again since something changed. It said: “said”.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, c.world, web)
			if got := shown(a); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if a.Well || a.State != "Pod shop/web has been pending for 3 minutes and has no node." ||
				len(a.Unseen) > 0 {
				t.Errorf("%+v", a)
			}
		})
	}
}

// TestSeen is what the answer says to callers who may not read all, and of schedulers that are silent.
func TestSeen(t *testing.T) {
	t.Parallel()
	silent := func(scheduler, more string) string {
		w := strings.ReplaceAll(waits("1", ""), "schedulerName: default-scheduler", "schedulerName: "+scheduler)
		return nodeText("n1", "4", "") + w[:strings.Index(w, "conditions: [{")] + "conditions: []}}" + more
	}
	lease := func(renewed string) string {
		return `
---
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: kube-scheduler, namespace: kube-system}, spec: {renewTime: "` + renewed + `"}}`
	}
	for name, c := range map[string]struct {
		world  string
		hidden []string
		want   string
	}{
		"nodes are hidden": {
			nodeText("n1", "1", "") + strings.ReplaceAll(waits("2", ""), "message: said",
				`message: "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {a: b}. preemption: 0/3 nodes are available: 3 x."`),
			[]string{"nodes"},
			"UntoleratedTaint: The scheduler says of 2 nodes: “node(s) had untolerated taint(s)”.\n+ InsufficientResource\n"},
		"nodes are hidden and the message is another": {
			nodeText("n1", "1", "") + waits("2", ""), []string{"nodes"},
			"SchedulerRefusal: The scheduler says: “said”.\n"},
		"a scheduler of that name does not run": {silent("tetris", ""), nil,
			`NoScheduler: The pod asks for the scheduler tetris, and none of that name has said anything about it.
- Run that scheduler.
  
- Ask for default-scheduler as schedulerName.
  kubectl -n shop patch deployment web --type=json -p '[{"op":"replace","path":"/spec/template/spec/schedulerName","value":"default-scheduler"}]'
`},
		"the default scheduler is dead": {silent("default-scheduler", lease("2026-01-02T11:50:00.000000Z")), nil,
			`NoScheduler: The default scheduler does not run: it last renewed its lease 10 minutes ago.
- Start kube-scheduler, or look at its logs.
  
`},
		"the default scheduler is silent": {silent("default-scheduler", lease("2026-01-02T11:59:55.000000Z")), nil,
			`NoScheduler: The default scheduler runs, and has said nothing about the pod.
- Look at the logs of kube-scheduler.
  
`},
		"the pod is new": {
			strings.ReplaceAll(silent("default-scheduler", ""), "11:57:00", "11:59:58"), nil,
			"SchedulerHasNotTried: The pod fits on node n1 now, by the rules of the default scheduler. Its scheduler has not looked at it yet.\n"},
		"room is made": {
			nodeText("n1", "1", "") + strings.ReplaceAll(runs("a", "n1", "1", ""), `creationTimestamp:`,
				`deletionTimestamp: "2026-01-02T11:59:50Z", creationTimestamp:`) +
				strings.ReplaceAll(waits("1", ", priority: 7"), "status: {phase: Pending,",
					"status: {phase: Pending, nominatedNodeName: n1,"), nil,
			`Preempting: The scheduler makes room for the pod on node n1: pods of lower priority end there, and it waits until they are gone: a, whose grace period is over.
+ InsufficientResource
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := ask(t, c.world, web, c.hidden...)
			if got := shown(a); got != c.want || len(a.Unseen) != len(c.hidden) {
				t.Errorf("got\n%s\nwant\n%s\nunseen %q", got, c.want, a.Unseen)
			}
		})
	}
}

// TestBoundsAreSaid: not all nodes of a large cluster are tried for changes, and the answer says so.
func TestBoundsAreSaid(t *testing.T) {
	t.Parallel()
	world := waits("2", "")
	for i := range maxSeats + 1 {
		world += nodeText(fmt.Sprintf("n%03d", i), "1", "")
	}
	a := ask(t, world, web)
	want := "Not all changes were tried on all of 65 nodes: a smaller one may help, too."
	if len(a.Unseen) != 1 || a.Unseen[0] != want || a.Causes[0].Code != insufficientResource ||
		len(a.Causes[0].Fixes) == 0 {
		t.Errorf("%q, %s", a.Unseen, shown(a))
	}
}

// TestSearchEnds: a search whose time is over returns what it has, and says that it was cut.
func TestSearchEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := &search{ctx: ctx, cluster: &simulate.Cluster{MaxVisits: 1}}
	if s.spent() || s.cut {
		t.Error("it ended before it began")
	}
	cancel()
	if !s.spent() || !s.cut {
		t.Error("it goes on")
	}
}

// TestHere says why a pod runs on its node.
func TestHere(t *testing.T) {
	t.Parallel()
	a := why.Object{Kind: "Pod", Namespace: "shop", Name: "a"}
	for name, c := range map[string]struct{ world, want string }{
		"the only node": {nodeText("n1", "4", "") + runs("a", "n1", "1", ""),
			"OnlyNode: Node n1 is the only one on which the pod fits now.\n"},
		"the emptier node": {
			nodeText("n1", "4", "") + nodeText("n2", "4", "") + runs("a", "n1", "1", "") + runs("b", "n2", "2", ""),
			`HighestScore: The pod fits on 2 nodes now. Of these, n1 has the highest score: n1 454 and n2 428.
because PluginScore: NodeResourcesFit gives n1 86 of 100, and the others 60.
`},
		"it would not fit again": {nodeText("n1", "4", controlPlaneTaint) + runs("a", "n1", "1", ""),
			"WouldNotFitNow: The pod would not be placed on node n1 again now: “node(s) had untolerated taint(s)”. That does not end it.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ask(t, c.world, a)
			if shown(got) != c.want || !got.Well {
				t.Errorf("got\n%s\nwant\n%s", shown(got), c.want)
			}
		})
	}
}
