// Package volumezone keeps pods in the zones and regions that labels of their volumes name.
package volumezone

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/volumes"
)

// name of the plug-in.
const name = "VolumeZone"

// Reason why a node is refused.
const Reason = "node(s) had no available volume zone"

// Plugin is the VolumeZone plug-in.
type Plugin struct{ Volumes *volumes.Volumes }

var (
	_ framework.PreFilter  = Plugin{}
	_ framework.Filter     = Plugin{}
	_ framework.NodeLocal  = Plugin{}
	_ framework.Interested = Plugin{}
)

// labelsOf are the labels that count; the older ones mean the same.
var labelsOf = [...]string{corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
	corev1.LabelTopologyZone, corev1.LabelTopologyRegion}

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// zone is a label of a volume with the values that a node may have, separated by "__".
type zone struct{ label, values string }

// zones are those of the pod's bound volumes; claims that cannot be had refuse the pod elsewhere (VolumeBinding).
func (p Plugin) zones(pod *model.PodInfo) []zone {
	if len(pod.Claims) == 0 {
		return nil
	}
	needs, st := p.Volumes.Needs(pod)
	if !st.IsSuccess() {
		return nil
	}
	var out []zone
	for _, pv := range needs.Bound {
		for _, l := range labelsOf {
			if v, ok := pv.Labels[l]; ok {
				out = append(out, zone{l, v})
			}
		}
	}
	return out
}

// Reads the zones of the pod's volumes.
func (p Plugin) Reads(pod *model.PodInfo, k *model.Key) {
	for _, z := range p.zones(pod) {
		k.Str(z.label, z.values)
	}
}

// PreFilter skips pods whose volumes are everywhere.
func (p Plugin) PreFilter(state *framework.CycleState, pod *model.PodInfo, _ *model.Snapshot) (map[string]bool,
	*framework.Status) {
	zones := p.zones(pod)
	if len(zones) == 0 {
		return nil, framework.NewStatus(framework.Skip)
	}
	state.Write(name, zones)
	return nil, nil
}

// Filter refuses nodes of other zones. A node that says nothing of zones takes all.
func (p Plugin) Filter(state *framework.CycleState, _ *model.PodInfo, node *model.NodeInfo) *framework.Status {
	says := false
	for _, l := range labelsOf {
		_, has := node.Node.Labels[l]
		says = says || has
	}
	if !says {
		return nil
	}
	zones, _ := state.Read(name).([]zone)
	for _, z := range zones {
		if !z.has(node.Node.Labels) {
			return framework.NewStatus(framework.UnschedulableAndUnresolvable, Reason)
		}
	}
	return nil
}

// has reports whether a node's label, by its older or newer name, has one of the values.
func (z zone) has(labels map[string]string) bool {
	value, ok := labels[z.label]
	if !ok {
		value, ok = labels[otherName(z.label)]
	}
	if !ok {
		return false
	}
	for v := range strings.SplitSeq(z.values, "__") {
		if v == value {
			return true
		}
	}
	return false
}

// otherName is what else a label is called.
func otherName(label string) string {
	switch label {
	case corev1.LabelFailureDomainBetaZone:
		return corev1.LabelTopologyZone
	case corev1.LabelTopologyZone:
		return corev1.LabelFailureDomainBetaZone
	case corev1.LabelFailureDomainBetaRegion:
		return corev1.LabelTopologyRegion
	}
	return corev1.LabelFailureDomainBetaRegion
}

// EventsToRegister: a node of the right zone, or other volumes.
func (Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{
		{Kind: clusterevent.Node, Action: clusterevent.Add | clusterevent.UpdateLabels},
		{Kind: clusterevent.Claim, Action: clusterevent.Add | clusterevent.Update},
		{Kind: clusterevent.Volume, Action: clusterevent.Add | clusterevent.Update},
		{Kind: clusterevent.Class, Action: clusterevent.Add},
	}
}
