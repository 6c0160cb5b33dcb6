package whatif

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why"
	"bonsai/pkg/why/simulate"
)

// daemon makes the pods that a DaemonSet has on nodes: one on each that its template selects and tolerates.
func (f *future) daemon(ctx context.Context, ds *appsv1.DaemonSet, nodes []*corev1.Node) {
	for _, n := range nodes {
		t := *ds.Spec.Template.DeepCopy()
		t.Spec.Tolerations = append(t.Spec.Tolerations, alwaysTolerated(&t.Spec)...)
		if !meantFor(&t.Spec, n) {
			continue
		}
		pin(&t.Spec, n.Name)
		ref := *metav1.NewControllerRef(ds, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
		f.more(ctx, &workload{owner: "daemonset/" + ds.Name, namespace: ds.Namespace, template: t,
			ref: []metav1.OwnerReference{ref}}, 1)
	}
}

// meantFor reports whether a DaemonSet with these pods has one on a node.
func meantFor(spec *corev1.PodSpec, n *corev1.Node) bool {
	pod := &corev1.Pod{Spec: *spec}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(n); err != nil || !fits {
		return false
	}
	for i := range n.Spec.Taints {
		t := &n.Spec.Taints[i]
		if t.Effect != corev1.TaintEffectPreferNoSchedule && !model.Tolerated(pod, t) {
			return false
		}
	}
	return true
}

// alwaysTolerated are the tolerations that the controller gives to all pods of DaemonSets
// (https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations).
func alwaysTolerated(spec *corev1.PodSpec) (list []corev1.Toleration) {
	exists := func(key string, effect corev1.TaintEffect) {
		list = append(list, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
	}
	exists(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	exists(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	for _, key := range []string{corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure,
		corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable} {
		exists(key, corev1.TaintEffectNoSchedule)
	}
	if spec.HostNetwork {
		exists(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
	return list
}

// pin leaves a pod one node, as the controller does; what else its author selects has been looked at.
func pin(spec *corev1.PodSpec, node string) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}
}

// nodesOf are the nodes of a copy, in its order.
func nodesOf(c *simulate.Cluster) (list []*corev1.Node) {
	for n := range c.Snapshot.All {
		list = append(list, n.Node)
	}
	return list
}

// added makes the pods that the DaemonSets of the cluster have on a new node.
func (f *future) added(ctx context.Context, n *corev1.Node) {
	sets, _ := why.List[appsv1.DaemonSet](ctx, f.World, "", nil)
	for _, ds := range sets {
		if ds.DeletionTimestamp == nil {
			f.daemon(ctx, ds, []*corev1.Node{n})
		}
	}
}
