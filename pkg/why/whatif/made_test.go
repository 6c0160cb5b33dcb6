package whatif

import (
	"fmt"
	"strings"
	"testing"

	"bonsai/pkg/why"
	"bonsai/pkg/why/whytest"
)

// quotaOf is a ResourceQuota of the namespace: its bounds, and what is used.
func quotaOf(hard, used string) string {
	return fmt.Sprintf(`
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: team, namespace: shop}, spec: {hard: {%s}}, status: {hard: {%[1]s}, used: {%s}}}`,
		hard, used)
}

const (
	limits = `
---
{apiVersion: v1, kind: LimitRange, metadata: {name: limits, namespace: shop}, spec: {limits: [{type: Container, default: {cpu: "2"}, defaultRequest: {cpu: "2"}, max: {cpu: "3"}}]}}`
	classes = `
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, provisioner: disks.example.com, volumeBindingMode: Immediate}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: local}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: Immediate}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: far}, spec: {storageClassName: local, capacity: {storage: 5Gi}, accessModes: [ReadWriteOnce], nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n2]}]}]}}}, status: {phase: Available}}`
)

// silent is a Deployment of two pods that do not say what they ask for.
func silent(kind, more string) string {
	return fmt.Sprintf(`
{apiVersion: apps/v1, kind: %s, metadata: {name: app, namespace: shop}, spec: {replicas: 2, %stemplate: {metadata: {labels: {app: app}}, spec: {containers: [{name: c, image: i}]}}}}`, kind, more)
}

func claim(class, size string) string {
	return fmt.Sprintf(`
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop}, spec: {%saccessModes: [ReadWriteOnce], resources: {requests: {storage: %s}}}}`, class, size)
}

const user = `
---
{apiVersion: v1, kind: Pod, metadata: {name: user, namespace: shop}, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}], containers: [{name: c, image: i}]}}`

// TestMade: what a change makes goes through admission and counts against quotas before it is placed, wherever it is
// made.
func TestMade(t *testing.T) {
	t.Parallel()
	claims := `volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 3Gi}}}}], `
	for name, c := range map[string]struct{ world, change, file, want string }{
		"new pods over a quota": {node("n1", "8") + quotaOf("pods: 5", "pods: 4"), "", silent("Deployment", ""),
			`If you apply deployment/app, 1 pod would be placed, and 0 pods would find no node. 1 pod would not even be made.
QuotaExceeded: 1 pod of deployment/app could not be made: “exceeded quota: team, requested: pods=1, used: pods=5, limited: pods=5”.
WouldBePlaced: 1 pod would be placed on node n1: 1 of deployment/app.
`},
		"a quota of the same file": {node("n1", "8") + running("a", "n1", "1", "web"), "", silent("Deployment", "") + `
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: team, namespace: shop}, spec: {hard: {pods: 2}}}`,
			`If you apply deployment/app, resourcequota/team, 1 pod would be placed, and 0 pods would find no node. 1 pod would not even be made.
QuotaExceeded: 1 pod of deployment/app could not be made: “exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2”.
WouldBePlaced: 1 pod would be placed on node n1: 1 of deployment/app.
`},
		"a quota of workloads": {node("n1", "8") + quotaOf("count/deployments.apps: 1", "count/deployments.apps: 1"), "",
			silent("Deployment", ""),
			`If you apply deployment/app, 0 pods would be placed, and 0 pods would find no node.
QuotaExceeded: Deployment shop/app could not be made: “exceeded quota: team, requested: count/deployments.apps=1, used: count/deployments.apps=1, limited: count/deployments.apps=1”.
`},
		"a quota that counts what pods do not say": {node("n1", "8") + quotaOf("requests.cpu: 8", "requests.cpu: 0"), "",
			silent("Deployment", ""),
			`If you apply deployment/app, 0 pods would be placed, and 0 pods would find no node. 2 pods would not even be made.
QuotaNeedsResources: 2 pods of deployment/app could not be made: “failed quota: team: must specify requests.cpu for: c”.
`},
		"defaults of a limit range": {node("n1", "3") + limits, "", silent("Deployment", ""),
			`If you apply deployment/app, 1 pod would be placed, and 1 pod would find no node.
WouldWait: 1 pod of deployment/app would find no node: “0/1 nodes are available: 1 Insufficient cpu.”. Each asks for cpu=2.
WouldBePlaced: 1 pod would be placed on node n1: 1 of deployment/app.
`},
		"defaults of a limit range, in a quota": {node("n1", "8") + limits + quotaOf("requests.cpu: 3", "requests.cpu: 0"), "",
			silent("Deployment", ""),
			`If you apply deployment/app, 1 pod would be placed, and 0 pods would find no node. 1 pod would not even be made.
QuotaExceeded: 1 pod of deployment/app could not be made: “exceeded quota: team, requested: requests.cpu=2, used: requests.cpu=2, limited: requests.cpu=3”. Each asks for cpu=2.
because LimitRangeDefault
WouldBePlaced: 1 pod would be placed on node n1: 1 of deployment/app.
`},
		"a limit range that forbids": {node("n1", "8") + limits, "",
			strings.Replace(silent("Deployment", ""), "image: i", "image: i, resources: {requests: {cpu: 4}, limits: {cpu: 4}}", 1),
			`If you apply deployment/app, 0 pods would be placed, and 0 pods would find no node. 2 pods would not even be made.
LimitRange: 2 pods of deployment/app could not be made: “maximum cpu usage per Container is 3, but limit is 4”. Each asks for cpu=4.
`},
		"limits that become requests": {node("n1", "3"), "",
			strings.Replace(silent("Deployment", ""), "image: i", "image: i, resources: {limits: {cpu: 2}}", 1),
			`If you apply deployment/app, 1 pod would be placed, and 1 pod would find no node.
WouldWait: 1 pod of deployment/app would find no node: “0/1 nodes are available: 1 Insufficient cpu.”. Each asks for cpu=2.
WouldBePlaced: 1 pod would be placed on node n1: 1 of deployment/app.
`},
		"the default priority class": {node("n1", "1") + running("a", "n1", "1", "web") + limits + `
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: usual}, value: 100, globalDefault: true}`, "",
			`
{apiVersion: v1, kind: Pod, metadata: {name: one, namespace: shop}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}`,
			`If you apply pod/one, 1 pod would be placed, and 1 pod would find no node.
WouldWait: 1 pod of replicaset/web-1 would find no node: “0/1 nodes are available: 1 Insufficient cpu.”. Each asks for cpu=1.
WouldEvict: For pod one-new-1, which has a higher priority, the scheduler would evict shop/a from node n1.
WouldBePlaced: 1 pod would be placed on node n1: 1 of pod/one.
WouldEnd: 1 pod would end: 1 on node n1.
`},
		"a scale of pods that say nothing": {node("n1", "3") + limits +
			strings.ReplaceAll(deployment, ", resources: {requests: {cpu: 1}}", ""), "scale deployment/web --replicas=2", "",
			`If you scale deployment/web to 2, 1 pod would be placed, and 1 pod would find no node.
WouldWait: 1 pod of deployment/web would find no node: “0/1 nodes are available: 1 Insufficient cpu.”. Each asks for cpu=2.
WouldBePlaced: 1 pod would be placed on node n1: 1 of deployment/web.
`},
		"a drain under a full quota": {node("n1", "4") + node("n2", "4") + running("a", "n1", "1", "web") +
			quotaOf("pods: 1", "pods: 1"), "drain n1", "",
			`If you drain node n1, 1 pod would be placed, and 0 pods would find no node.
WouldBePlaced: 1 pod would be placed on node n2: 1 of replicaset/web-1.
WouldEnd: 1 pod would end: 1 on node n1.
`},
		"a drain after limits have changed": {node("n1", "8") + node("n2", "8") + running("a", "n1", "5", "web") + limits,
			"drain n1", "",
			`If you drain node n1, 0 pods would be placed, and 0 pods would find no node. 1 pod would not even be made.
LimitRange: 1 pod of replicaset/web-1 could not be made: “maximum cpu usage per Container is 3, but request is 5”. Each asks for cpu=5.
WouldEnd: 1 pod would end: 1 on node n1.
`},
		"an account and a standard that forbid": {strings.Replace(node("n1", "8"), "---", `---
{apiVersion: v1, kind: Namespace, metadata: {name: strict, labels: {pod-security.kubernetes.io/enforce: restricted}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: strict}}
---`, 1), "", `
{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: strict}, spec: {containers: [{name: c, image: i, securityContext: {privileged: true}}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: shop}, spec: {serviceAccountName: robot, containers: [{name: c, image: i}]}}`,
			`If you apply pod/a, pod/b, 0 pods would be placed, and 0 pods would find no node. 2 pods would not even be made.
PodSecurity: 1 pod of pod/a could not be made: “violates PodSecurity "restricted:latest": privileged (container "c" must not set securityContext.privileged=true), allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (contain…”.
ServiceAccountMissing: 1 pod of pod/b could not be made: “error looking up service account shop/robot: serviceaccount "robot" not found”.
`},
		"a claim over a quota": {node("n1", "8") + classes + quotaOf("requests.storage: 10Gi", "requests.storage: 8Gi"), "",
			claim("", "3Gi") + user,
			`If you apply persistentvolumeclaim/data, pod/user, 0 pods would be placed, and 1 pod would find no node.
QuotaExceeded: PersistentVolumeClaim shop/data could not be made: “exceeded quota: team, requested: requests.storage=3Gi, used: requests.storage=8Gi, limited: requests.storage=10Gi”.
WouldWait: 1 pod of pod/user would find no node: “0/1 nodes are available: persistentvolumeclaim "data" not found.”.
`},
		"a claim that grows over a quota": {node("n1", "8") + classes + claim("", "3Gi") +
			quotaOf("requests.storage: 10Gi", "requests.storage: 8Gi"), "", claim("", "6Gi"),
			`If you apply persistentvolumeclaim/data, 0 pods would be placed, and 0 pods would find no node.
QuotaExceeded: PersistentVolumeClaim shop/data could not be made: “exceeded quota: team, requested: requests.storage=3Gi, used: requests.storage=8Gi, limited: requests.storage=10Gi”.
`},
		"a claim of the default class, and its pod": {node("n1", "8") + classes, "", claim("", "3Gi") + user,
			`If you apply persistentvolumeclaim/data, pod/user, 1 pod would be placed, and 0 pods would find no node.
WouldBePlaced: 1 pod would be placed on node n1: 1 of pod/user.
`},
		"a claim that gets a volume elsewhere": {node("n1", "8") + classes, "", claim("storageClassName: local, ", "3Gi") + user,
			`If you apply persistentvolumeclaim/data, pod/user, 0 pods would be placed, and 1 pod would find no node.
WouldWait: 1 pod of pod/user would find no node: “0/1 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity.”.
because PodHeld: Its claim data has the volume far, which is reached from no node.
`},
		"claims of a StatefulSet": {node("n1", "8") + classes + quotaOf("requests.storage: 10Gi", "requests.storage: 6Gi"), "",
			silent("StatefulSet", claims),
			`If you apply statefulset/app, 1 pod would be placed, and 0 pods would find no node. 1 pod would not even be made.
QuotaExceeded: 1 pod of statefulset/app could not be made: “its claim data-app-1 cannot be made: exceeded quota: team, requested: requests.storage=3Gi, used: requests.storage=9Gi, limited: requests.storage=10Gi”.
WouldBePlaced: 1 pod would be placed on node n1: 1 of statefulset/app.
`},
		"a drain of the node with a volume": {strings.Replace(node("n1", "8"), "labels: {", "labels: {disk: here, ", 1) +
			node("n2", "8") + `
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: disk}, spec: {claimRef: {namespace: shop, name: data}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: In, values: [here]}]}]}}}, status: {phase: Bound}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop, annotations: {pv.kubernetes.io/bind-completed: "yes"}}, spec: {volumeName: disk}, status: {phase: Bound}}` +
			strings.Replace(running("a", "n1", "1", "web"), "spec: {", "spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}], ", 1),
			"drain n1", "",
			`If you drain node n1, 0 pods would be placed, and 1 pod would find no node.
WouldWait: 1 pod of replicaset/web-1 would find no node: “0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) were unschedulable.”. Each asks for cpu=1.
because PodHeld: Its claim data has the volume disk, which is reached from node n1 alone, which this change takes away.
WouldEnd: 1 pod would end: 1 on node n1.
`},
		"a DaemonSet": {node("n1", "8") + node("n2", "1") + node("n4", "8") +
			strings.Replace(node("n3", "8"), "status:", "spec: {taints: [{key: a, effect: NoSchedule}]}, status:", 1), "", `
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: shop}, spec: {template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}}}`,
			`If you apply daemonset/agent, 2 pods would be placed, and 1 pod would find no node.
WouldWait: 1 pod of daemonset/agent would find no node: “0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't satisfy plugin(s) [NodeAffinity].”. Each asks for cpu=2.
WouldBePlaced: 1 pod would be placed on node n1: 1 of daemonset/agent.
WouldBePlaced: 1 pod would be placed on node n4: 1 of daemonset/agent.
`},
		"a new node takes what DaemonSets have there": {node("n1", "1") + running("b", "", "2", "web") + `
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: shop, uid: a}, spec: {template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}}}`,
			"", "{apiVersion: v1, kind: Node, metadata: {name: n9}, status: {allocatable: {cpu: \"2\", pods: \"9\"}}}",
			`If you apply node/n9, 1 pod would be placed, and 1 pod would find no node.
WouldWait: 1 pod of daemonset/agent would find no node: “0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s) [NodeAffinity].”. Each asks for cpu=1.
WouldBePlaced: 1 pod would be placed on node n9: 1 of replicaset/web-1.
`},
		"a Job makes no more pods than it completes": {node("n1", "8"), "", `
{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: shop}, spec: {parallelism: 5, completions: 2, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`,
			`If you apply job/j, 2 pods would be placed, and 0 pods would find no node.
WouldBePlaced: 2 pods would be placed on node n1: 2 of job/j.
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
				got += cause.Code + ": " + cause.Text + "\n"
				for _, b := range cause.Because {
					if b.Code != "NodeRefuses" {
						got += "because " + b.Code
						if b.Code == "PodHeld" {
							got += ": " + b.Text
						}
						got += "\n"
					}
				}
			}
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestUnreadAdmission: what a plug-in may not read refuses nothing.
func TestUnreadAdmission(t *testing.T) {
	t.Parallel()
	s := whytest.Parse(t, node("n1", "8"))
	s.Hidden = []string{"serviceaccounts", "limitranges", "namespaces", "priorityclasses", "resourcequotas"}
	ch := Change{Verb: Apply, Namespace: "shop", Objects: whytest.Parse(t, silent("Deployment", "")).Objects}
	r, err := Foresee(t.Context(), why.NewCase(why.NewWorld(s), whytest.Now, why.Explainers{}), ch, nil)
	if err != nil || len(r.Placed) != 2 || len(r.Unseen) != 5 {
		t.Errorf("%+v, %v", r, err)
	}
}
