package daemonset

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// placement is the answer for one node. run means that the node should have a pod, and one is created if it lacks it.
// stay means that a pod that is there may remain. run implies stay. A NoSchedule taint that came later leaves stay
// without run: it closes the node for new pods and drives none away, as the API documents for the effect.
type placement struct{ run, stay bool }

// placer is the part of a DaemonSet's template that decides where its pods belong, parsed once for many nodes.
type placer struct {
	nodeName  string
	affinity  nodeaffinity.RequiredNodeAffinity
	tolerated []corev1.Toleration
}

func placerOf(ds *appsv1.DaemonSet) placer {
	spec := &ds.Spec.Template.Spec
	return placer{nodeName: spec.NodeName, affinity: nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: *spec}),
		tolerated: tolerations(spec)}
}

// place decides by the template's node name, node selector, required node affinity and tolerations. Whether the node
// has room is not asked: the pod is made in any case and stays pending, so that the status shows that it is missing.
func (from placer) place(node *corev1.Node) placement {
	if from.nodeName != "" && from.nodeName != node.Name {
		return placement{}
	}
	// A selector that cannot be parsed selects nothing; the API server refuses it.
	if ok, err := from.affinity.Match(node); !ok || err != nil {
		return placement{}
	}
	p := placement{run: true, stay: true}
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		// true: the operators Gt and Lt of tolerations are compared as well.
		if t.Effect == corev1.TaintEffectPreferNoSchedule ||
			slices.ContainsFunc(from.tolerated, func(o corev1.Toleration) bool {
				return o.ToleratesTaint(klog.Logger{}, t, true)
			}) {
			continue
		}
		p.run = false
		if t.Effect == corev1.TaintEffectNoExecute {
			p.stay = false
		}
	}
	return p
}

// tolerations are the template's, and those of every daemon: it runs on nodes that are in trouble or closed for others.
// One of these that the template has with a limit in seconds loses the limit
// (https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations).
//
// Why a limit goes: with it the taint eviction would delete the daemon from an unreachable node, and the controller
// would create it there again, for as long as the node is away.
func tolerations(spec *corev1.PodSpec) []corev1.Toleration {
	out := slices.Clone(spec.Tolerations)
	add := func(key string, effect corev1.TaintEffect) {
		t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}
		found := false
		for i := range out {
			if out[i].MatchToleration(&t) {
				out[i], found = t, true
			}
		}
		if !found {
			out = append(out, t)
		}
	}
	add(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute)
	add(corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodePIDPressure, corev1.TaintEffectNoSchedule)
	add(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule)
	if spec.HostNetwork {
		add(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)
	}
	return out
}
