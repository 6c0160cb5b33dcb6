package whatif

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/scheduler/cache"
	"bonsai/pkg/scheduler/decide"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/workloads"
	"bonsai/pkg/why/whytest"
)

// randomCluster writes a small cluster with the Deployment web, and says to how many replicas it is to be scaled.
func randomCluster(r *rand.Rand) (world string, replicas int) {
	var b strings.Builder
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	rules := one("", "", `topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}],`,
		`affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}]}},`,
		`affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 50, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {app: db}}}}]}},`,
		`nodeSelector: {disk: ssd},`, `tolerations: [{key: k, operator: Exists}],`)
	template := fmt.Sprintf(`{metadata: {labels: {app: web}}, spec: {schedulerName: default-scheduler, %s containers: [{name: c, image: i, resources: {requests: {cpu: %s, memory: %s}}}]}}`,
		rules, one("300m", "700m", "1"), one("100Mi", "1Gi"))
	fmt.Fprintf(&b, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: d}, spec: {replicas: 0, template: %s}}\n", template)
	fmt.Fprintf(&b, "---\n{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, namespace: shop, uid: r, ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]}, spec: {selector: {matchLabels: {app: web}}, template: %s}}\n", template)
	nodes := 2 + r.IntN(4)
	for i := range nodes {
		spec := one("", "", "", "unschedulable: true", "taints: [{key: k, value: v, effect: NoSchedule}]",
			"taints: [{key: p, effect: PreferNoSchedule}]")
		fmt.Fprintf(&b, `---
{apiVersion: v1, kind: Node, metadata: {name: n%[1]d, labels: {kubernetes.io/hostname: n%[1]d, zone: %s, disk: %s}}, spec: {%s}, status: {allocatable: {cpu: "%s", memory: %s, pods: "%s"}}}
`, i, one("a", "b"), one("ssd", "hdd"), spec, one("1", "2", "4"), one("2Gi", "8Gi"), one("4", "20"))
	}
	for i := range r.IntN(8) {
		on := fmt.Sprintf("nodeName: n%d,", r.IntN(nodes))
		if r.IntN(4) == 0 {
			on = ""
		}
		fmt.Fprintf(&b, `---
{apiVersion: v1, kind: Pod, metadata: {name: p%[1]d, namespace: shop, uid: p%[1]d, labels: {app: %[2]s}, creationTimestamp: "2026-01-02T11:0%[1]d:00Z"}, spec: {%[3]s schedulerName: default-scheduler, containers: [{name: c, resources: {requests: {cpu: %[4]s}}}]}, status: {phase: Pending}}
`, i, one("db", "web"), on, one("100m", "500m"))
	}
	if r.IntN(2) == 0 {
		b.WriteString("---\n{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}}}\n")
	}
	return b.String(), 1 + r.IntN(9)
}

// oracle is a scheduler's cache and its incremental decider.
type oracle struct {
	t        *testing.T
	cache    *cache.Cache
	snapshot *model.Snapshot
	decider  *decide.Incremental
	plain    *decide.Plain
	profile  *profile.Profile
	pods     map[string]*corev1.Pod // those that exist and have no node
	template corev1.PodTemplateSpec
}

// noNamespaces says that no namespace has labels.
type noNamespaces struct{}

func (noNamespaces) NamespaceLabels(string) labels.Set { return nil }
func (noNamespaces) Epoch() int64                      { return 0 }

func newOracle(t *testing.T, world string, random decide.Random) *oracle {
	t.Helper()
	nominator := model.NewNominator()
	o := &oracle{t: t, cache: cache.New(), snapshot: model.NewSnapshot(), pods: map[string]*corev1.Pod{},
		decider: decide.NewIncremental(nominator, random), plain: &decide.Plain{Nominator: nominator, Random: random}}
	alike := workloads.New(func(string, *metav1.OwnerReference) labels.Selector {
		return labels.SelectorFromSet(labels.Set{"app": "web"})
	})
	into := func(from map[string]any, to any) {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from, to); err != nil {
			t.Fatal(err)
		}
	}
	for _, u := range whytest.Parse(t, world).Objects {
		switch u.GetKind() {
		case "Node":
			n := &corev1.Node{}
			into(u.Object, n)
			o.cache.SetNode(n)
		case "Service":
			s := &corev1.Service{}
			into(u.Object, s)
			alike.ServiceChanged(nil, s)
		case "Deployment":
			spec := u.Object["spec"].(map[string]any)
			into(spec["template"].(map[string]any), &o.template)
		case "Pod":
			p := &corev1.Pod{}
			into(u.Object, p)
			if p.Spec.NodeName != "" {
				o.cache.Add(model.NewPodInfo(p))
			} else {
				o.pods[p.Name] = p
			}
		}
	}
	var err error
	if o.profile, err = profile.New("default-scheduler", plugins.Default(plugins.Config{Namespaces: noNamespaces{},
		Workloads: alike})); err != nil {
		t.Fatal(err)
	}
	return o
}

// pod returns the pod that a result is about.
func (o *oracle) pod(p Placed) *corev1.Pod {
	if !p.New {
		return o.pods[p.Pod.Name]
	}
	controller := true
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: p.Pod.Name, UID: types.UID(p.Pod.Name),
		Labels: o.template.Labels, OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet",
			Name: "web-1", UID: "r", Controller: &controller}}}, Spec: o.template.Spec}
}

// best returns the nodes among which the scheduler would choose, nil if the pod fits nowhere. The incremental decider
// must take one of them.
func (o *oracle) best(p Placed) []string {
	info := model.NewPodInfo(o.pod(p))
	o.cache.Refresh(o.snapshot)
	d, err := o.decider.Decide(o.t.Context(), o.profile, framework.NewCycleState(), info, o.snapshot)
	fit := (*framework.FitError)(nil)
	if errors.As(err, &fit) {
		return nil
	}
	all, plainErr := o.plain.Decide(o.t.Context(), o.profile, framework.NewCycleState(), info, o.snapshot)
	if err != nil || plainErr != nil || !slices.Contains(all.Best, d.Node) {
		o.t.Fatalf("%v, %v: %s is not one of %v", err, plainErr, d.Node, all.Best)
	}
	slices.Sort(all.Best)
	return all.Best
}

// place binds the pod to the node that was foreseen.
func (o *oracle) place(p Placed) {
	bound := o.pod(p).DeepCopy()
	bound.Spec.NodeName = p.Node
	if err := o.cache.Assume(model.NewPodInfo(bound), p.Node); err != nil {
		o.t.Fatal(err)
	}
}
