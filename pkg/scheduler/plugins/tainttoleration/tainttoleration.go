// Package tainttoleration keeps pods off nodes with taints that they do not tolerate, and prefers nodes with few taints
// of the effect PreferNoSchedule.
package tainttoleration

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "TaintToleration"

// reason why a node is refused; the status's Detail has the taint.
const reason = "node(s) had untolerated taint(s)"

// Plugin is the TaintToleration plug-in.
type Plugin struct{}

var (
	_ framework.Filter      = Plugin{}
	_ framework.Score       = Plugin{}
	_ framework.Normalizer  = Plugin{}
	_ framework.NodeLocal   = Plugin{}
	_ framework.FieldReader = Plugin{}
)

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// Fields returns tolerations and taints.
func (Plugin) Fields() framework.Fields {
	return framework.Fields{Pod: []string{"spec.tolerations"}, Node: []string{"spec.taints"}}
}

// Reads the tolerations.
func (Plugin) Reads(pod *model.PodInfo, k *model.Key) { k.Tolerations(pod.Pod) }

// Filter refuses a node with an untolerated NoSchedule or NoExecute taint.
func (Plugin) Filter(_ *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) *framework.Status {
	if t := model.Untolerated(pod.Pod, node.Node); t != nil {
		return &framework.Status{Code: framework.UnschedulableAndUnresolvable, Reasons: []string{reason},
			Detail: fmt.Sprintf("{%s: %s}", t.Key, t.Value)}
	}
	return nil
}

// Score counts the untolerated PreferNoSchedule taints.
func (Plugin) Score(_ *framework.CycleState, pod *model.PodInfo, node *model.NodeInfo) int64 {
	var n int64
	for i := range node.Node.Spec.Taints {
		t := &node.Node.Spec.Taints[i]
		if t.Effect == corev1.TaintEffectPreferNoSchedule && !model.Tolerated(pod.Pod, t) {
			n++
		}
	}
	return n
}

// NormalizeScore gives the node with the fewest such taints the most.
func (Plugin) NormalizeScore(_ *framework.CycleState, _ *model.PodInfo, _ []*model.NodeInfo, scores []int64) {
	framework.DefaultNormalize(true, scores)
}

// EventsToRegister: a node comes or its taints change, and the pod tolerates what is left; or the pod gets tolerations.
func (p Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{
		{Kind: clusterevent.Node, Action: clusterevent.Add | clusterevent.UpdateTaints, Reads: model.KeyOf(p.Reads),
			Hint: func(pod *model.PodInfo, e clusterevent.Event) bool {
				n, ok := e.New.(*corev1.Node)
				return !ok || model.Untolerated(pod.Pod, n) == nil
			}},
		{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateTolerations},
	}
}
