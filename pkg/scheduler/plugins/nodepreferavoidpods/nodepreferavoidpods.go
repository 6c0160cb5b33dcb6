// Package nodepreferavoidpods sends pods away from nodes whose annotation scheduler.alpha.kubernetes.io/preferAvoidPods
// names their controller. Only policies (--policy-config-file) know it.
package nodepreferavoidpods

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "NodePreferAvoidPods"

// Plugin is the NodePreferAvoidPods plug-in.
type Plugin struct{}

var (
	_ framework.Score       = Plugin{}
	_ framework.NodeLocal   = Plugin{}
	_ framework.FieldReader = Plugin{}
)

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// Fields returns the pod's controller and the annotation of nodes.
func (Plugin) Fields() framework.Fields {
	return framework.Fields{
		Pod:  []string{"metadata.ownerReferences"},
		Node: []string{"metadata.annotations[" + corev1.PreferAvoidPodsAnnotationKey + "]"},
	}
}

// controller is the ReplicationController or ReplicaSet of a pod, nil if it has another one or none.
func controller(pod *corev1.Pod) *metav1.OwnerReference {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != "ReplicationController" && ref.Kind != "ReplicaSet" {
		return nil
	}
	return ref
}

// Reads the pod's controller.
func (Plugin) Reads(pod *model.PodInfo, k *model.Key) {
	if ref := controller(pod.Pod); ref != nil {
		k.Str(ref.Kind, string(ref.UID))
		return
	}
	k.Num(-1)
}

// Score is nothing on nodes that are to be avoided, and the most on others. An annotation that cannot be read says
// nothing.
func (Plugin) Score(_ *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) int64 {
	ref, text := controller(pod.Pod), node.Node.Annotations[corev1.PreferAvoidPodsAnnotationKey]
	if ref == nil || text == "" {
		return framework.MaxNodeScore
	}
	var avoid corev1.AvoidPods
	if json.Unmarshal([]byte(text), &avoid) == nil &&
		slices.ContainsFunc(avoid.PreferAvoidPods, func(e corev1.PreferAvoidPodsEntry) bool {
			c := e.PodSignature.PodController
			return c != nil && c.Kind == ref.Kind && c.UID == ref.UID
		}) {
		return 0
	}
	return framework.MaxNodeScore
}
