// Package nodeunschedulable keeps pods off cordoned nodes, unless they tolerate the taint that a cordoned node has.
package nodeunschedulable

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "NodeUnschedulable"

// reason why a node is refused.
const reason = "node(s) were unschedulable"

// Plugin is the NodeUnschedulable plug-in.
type Plugin struct{}

var (
	_ framework.Filter      = Plugin{}
	_ framework.NodeLocal   = Plugin{}
	_ framework.FieldReader = Plugin{}
)

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// Fields returns what cordons a node, and the tolerations of it.
func (Plugin) Fields() framework.Fields {
	return framework.Fields{Pod: []string{"spec.tolerations"}, Node: []string{"spec.unschedulable"}}
}

// Reads the tolerations.
func (Plugin) Reads(pod *model.PodInfo, k *model.Key) { k.Tolerations(pod.Pod) }

// Filter refuses nodes with spec.unschedulable.
func (Plugin) Filter(_ *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) *framework.Status {
	if node.Node.Spec.Unschedulable && !tolerates(pod.Pod) {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, reason)
	}
	return nil
}

func tolerates(pod *corev1.Pod) bool {
	taint := &corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	return model.Tolerated(pod, taint)
}

// EventsToRegister: a schedulable node comes, or one is uncordoned.
func (p Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{
		{Kind: clusterevent.Node, Action: clusterevent.Add | clusterevent.UpdateTaints, Reads: model.KeyOf(p.Reads),
			Hint: func(pod *model.PodInfo, e clusterevent.Event) bool {
				n, ok := e.New.(*corev1.Node)
				return !ok || !n.Spec.Unschedulable || tolerates(pod.Pod)
			}},
		{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateTolerations},
	}
}
