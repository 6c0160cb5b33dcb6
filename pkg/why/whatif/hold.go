package whatif

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	volumehelper "k8s.io/component-helpers/storage/volume"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/why"
)

// holds says what leaves a pod no other node than some: volumes that only these reach, and labels that only these have.
// Nodes that the change has taken out are among them.
func (f *future) holds(ctx context.Context, pod *model.PodInfo, d *framework.Diagnosis) (list []string) {
	if d == nil {
		return nil
	}
	for _, pc := range pod.Claims {
		claim, _ := why.Get[corev1.PersistentVolumeClaim](ctx, f.World, pod.Pod.Namespace, pc.Name)
		if claim == nil || claim.Spec.VolumeName == "" {
			continue
		}
		volume, _ := why.Get[corev1.PersistentVolume](ctx, f.World, "", claim.Spec.VolumeName)
		if volume == nil || volume.Spec.NodeAffinity == nil {
			continue
		}
		nodes := having(ctx, f, func(n *corev1.Node) bool {
			return volumehelper.CheckNodeAffinity(volume, n.Labels) == nil
		})
		list = append(list, fmt.Sprintf("Its claim %s has the volume %s, which %s.", claim.Name, volume.Name,
			only(f.node, "reached from", nodes)))
	}
	if selector := pod.Pod.Spec.NodeSelector; len(selector) > 0 {
		nodes := having(ctx, f, func(n *corev1.Node) bool {
			return labels.Set(selector).AsSelector().Matches(labels.Set(n.Labels))
		})
		var pairs []string
		for _, k := range slices.Sorted(maps.Keys(selector)) {
			pairs = append(pairs, k+"="+selector[k])
		}
		list = append(list, fmt.Sprintf("It selects nodes by %s, which %s.", strings.Join(pairs, ", "),
			only(f.node, "found on", nodes)))
	}
	return list
}

// having are the names of the nodes with a property, those that the change takes away or cordons included.
func having(ctx context.Context, f *future, property func(*corev1.Node) bool) (names []string) {
	nodes, _ := why.List[corev1.Node](ctx, f.World, "", nil)
	for _, n := range nodes {
		if property(n) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// only says where something is: on which nodes, and whether the one that the change takes away is the only one.
func only(lost, verb string, nodes []string) string {
	switch len(nodes) {
	case 0:
		return "is " + verb + " no node"
	case 1:
		if nodes[0] == lost {
			return fmt.Sprintf("is %s node %s alone, which this change takes away", verb, nodes[0])
		}
		return fmt.Sprintf("is %s node %s alone", verb, nodes[0])
	}
	return fmt.Sprintf("is %s nodes %s", verb, why.And(nodes))
}
