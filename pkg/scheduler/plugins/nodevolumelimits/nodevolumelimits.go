// Package nodevolumelimits gives nodes no more volumes of a CSI driver than the driver there can attach, as the node's
// CSINode says, and none of a driver that is not there, if the driver is to be waited for.
package nodevolumelimits

import (
	storagev1 "k8s.io/api/storage/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/volumes"
)

// name of the plug-in.
const name = "NodeVolumeLimits"

// Reason why a node is refused.
const Reason = "node(s) exceed max volume count"

// Plugin is the NodeVolumeLimits plug-in.
type Plugin struct{ Volumes *volumes.Volumes }

var (
	_ framework.PreFilter  = Plugin{}
	_ framework.Filter     = Plugin{}
	_ framework.NodeLocal  = Plugin{}
	_ framework.Interested = Plugin{}
)

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// missing is the reason why a node is refused where a driver is not installed.
func missing(driver string) string { return driver + " CSI driver is not installed on the node" }

// Reads the pod's volumes of drivers that some node limits or may lack, and whether those of others are counted as they
// were.
func (p Plugin) Reads(pod *model.PodInfo, k *model.Key) {
	wants := p.wants(pod)
	for _, a := range wants {
		k.Str(a.driver, a.volume)
		k.Bool(p.Volumes.Required(a.driver))
	}
	if len(wants) > 0 {
		k.Num(p.Volumes.Counted())
	}
}

func (p Plugin) wants(pod *model.PodInfo) (out []attachment) {
	p.Volumes.Attached(pod, func(driver, volume string) { out = append(out, attachment{driver, volume}) })
	return out
}

// attachment is a volume of a driver.
type attachment struct{ driver, volume string }

// PreFilter skips pods without such volumes.
func (p Plugin) PreFilter(state *framework.CycleState, pod *model.PodInfo, _ *model.Snapshot) (map[string]bool,
	*framework.Status) {
	wants := p.wants(pod)
	if len(wants) == 0 {
		return nil, framework.NewStatus(framework.Skip)
	}
	state.Write(name, wants)
	return nil, nil
}

// Filter refuses nodes that lack a driver, and those that would have too many volumes. One that several pods use counts
// once. One that is still attached counts although its pods are gone: the driver has its slot until it is detached.
func (p Plugin) Filter(state *framework.CycleState, _ *model.PodInfo, node *model.NodeInfo) *framework.Status {
	wants, _ := state.Read(name).([]attachment)
	for _, a := range wants {
		if _, installed := node.VolumeLimits[a.driver]; !installed && p.Volumes.Required(a.driver) {
			return framework.NewStatus(framework.Unschedulable, missing(a.driver))
		}
	}
	if len(node.VolumeLimits) == 0 {
		return nil
	}
	has, counts := map[attachment]bool{}, map[string]int64{}
	count := func(driver, volume string) {
		if a := (attachment{driver, volume}); !has[a] {
			has[a] = true
			counts[driver]++
		}
	}
	for _, other := range node.Pods {
		p.Volumes.Attached(other, count)
	}
	p.Volumes.AttachedTo(node.Name(), count)
	for _, a := range wants {
		limit, limited := node.VolumeLimits[a.driver]
		if has[a] || !limited {
			continue
		}
		has[a] = true
		if counts[a.driver]++; counts[a.driver] > limit {
			return framework.NewStatus(framework.Unschedulable, Reason)
		}
	}
	return nil
}

// EventsToRegister: a pod with claims goes, a volume is detached, or a node takes more.
func (p Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{
		{Kind: clusterevent.Attachment, Action: clusterevent.Delete, Reads: model.KeyOf(p.Reads),
			Hint: func(pod *model.PodInfo, e clusterevent.Event) (helps bool) {
				gone, ok := e.Old.(*storagev1.VolumeAttachment)
				p.Volumes.Attached(pod, func(driver, _ string) { helps = helps || !ok || driver == gone.Spec.Attacher })
				return helps
			}},
		{Kind: clusterevent.CSINode, Action: clusterevent.Add | clusterevent.Update},
		{Kind: clusterevent.Driver, Action: clusterevent.Update | clusterevent.Delete},
		{Kind: clusterevent.Node, Action: clusterevent.Add},
		{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, When: func(e clusterevent.Event) bool {
			gone, ok := e.Old.(*model.PodInfo)
			return !ok || len(gone.Claims) > 0
		}},
		{Kind: clusterevent.Claim, Action: clusterevent.Add | clusterevent.Update},
	}
}
