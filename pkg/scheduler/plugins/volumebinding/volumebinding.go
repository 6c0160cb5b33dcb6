// Package volumebinding sends pods to nodes where the volumes of their claims can be used, or can be had, and has what
// was chosen for them bound before they are: free volumes, or volumes that are provisioned for the node.
package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
	"bonsai/pkg/scheduler/volumes"
)

// name of the plug-in.
const name = "VolumeBinding"

// defaultBindTimeout is how long the volumes of a pod may take to be bound.
const defaultBindTimeout = 10 * time.Minute

// Plugin is the VolumeBinding plug-in.
type Plugin struct {
	Volumes *volumes.Volumes
	// Node returns a node, nil if there is none of that name.
	Node func(name string) *corev1.Node
	// BindTimeout is defaultBindTimeout if it is nil; 0 waits for nothing.
	BindTimeout *time.Duration
	// Shape gives the score of a used part of the room for a pod's claims; roomy() if it is empty.
	Shape framework.Shape
}

var (
	_ framework.PreFilter  = &Plugin{}
	_ framework.Filter     = &Plugin{}
	_ framework.PreScore   = &Plugin{}
	_ framework.Score      = &Plugin{}
	_ framework.NodeLocal  = &Plugin{}
	_ framework.Reserve    = &Plugin{}
	_ framework.PreBind    = &Plugin{}
	_ framework.Lingering  = &Plugin{}
	_ framework.Interested = &Plugin{}
)

// Name is the plug-in's name.
func (*Plugin) Name() string { return name }

// Reads what the pod's claims need, as far as a node can give it: pods whose volumes are provisioned alike read the
// same.
func (p *Plugin) Reads(pod *model.PodInfo, k *model.Key) { p.Volumes.Key(pod, k) }

// PreFilter looks at the claims of the pod. Filter asks nothing else of them later, which may have changed by then.
func (p *Plugin) PreFilter(state *framework.CycleState, pod *model.PodInfo, _ *model.Snapshot) (map[string]bool,
	*framework.Status) {
	if len(pod.Claims) == 0 {
		return nil, framework.NewStatus(framework.Skip)
	}
	needs, st := p.Volumes.Needs(pod)
	if !st.IsSuccess() {
		return nil, st
	}
	state.Write(name, needs)
	return nil, nil
}

// Filter refuses nodes where a claim's volume cannot be used, or cannot be had.
func (p *Plugin) Filter(state *framework.CycleState, _ *model.PodInfo, node *model.NodeInfo) *framework.Status {
	needs, ok := state.Read(name).(*volumes.Needs)
	if !ok {
		return framework.AsStatus(errors.New("the pod's claims were not looked at"))
	}
	if _, reasons := needs.On(node.Node); len(reasons) > 0 {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, reasons...)
	}
	return nil
}

// chosen is where the state keeps what was chosen for the pod.
const chosen = name + "/chosen"

// Reserve takes what the pod's claims get on the node.
func (p *Plugin) Reserve(_ context.Context, state *framework.CycleState, pod *model.PodInfo,
	name string) *framework.Status {
	if len(pod.Claims) == 0 {
		return nil
	}
	node := p.Node(name)
	if node == nil {
		return framework.AsStatus(fmt.Errorf("node %q is gone", name))
	}
	choice, st := p.Volumes.Reserve(pod, node)
	if !st.IsSuccess() {
		return st
	}
	if !choice.Empty() {
		state.Write(chosen, choice)
	}
	return nil
}

// Unreserve gives back what is not bound yet.
func (p *Plugin) Unreserve(_ context.Context, state *framework.CycleState, _ *model.PodInfo, _ string) {
	choice, _ := state.Read(chosen).(*volumes.Choice)
	p.Volumes.Release(choice)
}

// Lingers implements framework.Lingering: others bind and provision.
func (*Plugin) Lingers(state *framework.CycleState, _ *model.PodInfo) bool {
	return state.Read(chosen) != nil
}

// PreBind writes what was chosen and waits until it is bound.
func (p *Plugin) PreBind(ctx context.Context, state *framework.CycleState, _ *model.PodInfo,
	name string) *framework.Status {
	choice, _ := state.Read(chosen).(*volumes.Choice)
	if choice.Empty() {
		return nil
	}
	node := p.Node(name)
	if node == nil {
		return framework.AsStatus(fmt.Errorf("node %q is gone", name))
	}
	timeout := defaultBindTimeout
	if p.BindTimeout != nil {
		timeout = *p.BindTimeout
	}
	if err := p.Volumes.Bind(ctx, choice, node, timeout); err != nil {
		return framework.AsStatus(fmt.Errorf("binding volumes: %w", err))
	}
	return nil
}

// EventsToRegister: a claim of the pod changes, or what claims can get.
func (p *Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{
		{Kind: clusterevent.Claim, Action: clusterevent.Add | clusterevent.Update,
			Reads: model.KeyOf(func(pod *model.PodInfo, k *model.Key) {
				k.Claims(pod)
			}),
			Hint: func(pod *model.PodInfo, e clusterevent.Event) bool {
				c, ok := e.New.(*corev1.PersistentVolumeClaim)
				return !ok || uses(pod, c)
			}},
		{Kind: clusterevent.Volume, Action: clusterevent.Add | clusterevent.Update},
		{Kind: clusterevent.Class, Action: clusterevent.Add | clusterevent.Update},
		{Kind: clusterevent.CSINode, Action: clusterevent.Add | clusterevent.Update},
		{Kind: clusterevent.Driver, Action: clusterevent.Update},
		{Kind: clusterevent.Capacity, Action: clusterevent.Add | clusterevent.Update},
		{Kind: clusterevent.Node, Action: clusterevent.Add | clusterevent.UpdateLabels},
		{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, When: func(e clusterevent.Event) bool {
			gone, ok := e.Old.(*model.PodInfo)
			return !ok || len(gone.Claims) > 0 // what it had reserved may be free again
		}},
	}
}

// uses reports whether a claim is the pod's.
func uses(pod *model.PodInfo, c *corev1.PersistentVolumeClaim) bool {
	if pod.Pod.Namespace != c.Namespace {
		return false
	}
	for _, pc := range pod.Claims {
		if pc.Name == c.Name {
			return true
		}
	}
	return false
}
