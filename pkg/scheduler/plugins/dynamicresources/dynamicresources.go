// Package dynamicresources sends pods to nodes where their ResourceClaims can have the devices that they ask for, and
// allocates and reserves these before the pods are bound.
package dynamicresources

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"bonsai/pkg/scheduler/clusterevent"
	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// Name of the plug-in.
const Name = "DynamicResources"

// The times of Plugin by default.
const (
	DefaultFilterTimeout  = 10 * time.Second
	DefaultBindingTimeout = 10 * time.Minute
)

// Plugin is the DynamicResources plug-in.
type Plugin struct {
	// FilterTimeout is how long devices may be chosen for on one node, BindingTimeout how long chosen ones may take to
	// become ready.
	FilterTimeout, BindingTimeout time.Duration

	Devices *devices.Devices
	// Node returns a node, nil if there is none of that name.
	Node func(name string) *corev1.Node
	Log  *slog.Logger
}

var (
	_ framework.PreEnqueue  = &Plugin{}
	_ framework.PreFilter   = &Plugin{}
	_ framework.Filter      = &Plugin{}
	_ framework.NodeLocal   = &Plugin{}
	_ framework.PostFilter  = &Plugin{}
	_ framework.Reserve     = &Plugin{}
	_ framework.PreBind     = &Plugin{}
	_ framework.Lingering   = &Plugin{}
	_ framework.Interested  = &Plugin{}
	_ framework.FieldReader = &Plugin{}
)

// Name is the plug-in's name.
func (*Plugin) Name() string { return Name }

// Fields returns the claims of a pod.
func (*Plugin) Fields() framework.Fields {
	return framework.Fields{Pod: []string{"spec.resourceClaims", "status.resourceClaimStatuses"}}
}

// claims reports whether a pod may need devices.
func claims(pod *model.PodInfo) bool {
	return len(pod.Pod.Spec.ResourceClaims) > 0 || devices.MayAsk(pod)
}

// PreEnqueue holds pods back whose claims are not there.
func (p *Plugin) PreEnqueue(pod *model.PodInfo) *framework.Status {
	if !claims(pod) {
		return nil
	}
	return p.Devices.Gate(pod.Pod)
}

// Reads what the pod's claims ask for: pods that ask for alike devices read the same.
func (p *Plugin) Reads(pod *model.PodInfo, k *model.Key) { p.Devices.Key(pod, k) }

// PreFilter looks at the claims of the pod.
func (p *Plugin) PreFilter(state *framework.CycleState, pod *model.PodInfo, _ *model.Snapshot) (map[string]bool,
	*framework.Status) {
	if !claims(pod) {
		return nil, framework.NewStatus(framework.Skip)
	}
	needs, st := p.Devices.Needs(pod)
	if !st.IsSuccess() {
		return nil, st
	}
	if needs.None() {
		return nil, framework.NewStatus(framework.Skip)
	}
	state.Write(Name, needs)
	return nil, nil
}

// Filter refuses nodes where the claims' devices cannot be used, or cannot be had.
func (p *Plugin) Filter(state *framework.CycleState, _ *model.PodInfo, node *model.NodeInfo) *framework.Status {
	needs, ok := state.Read(Name).(*devices.Needs)
	if !ok {
		return framework.AsStatus(errors.New("the pod's claims were not looked at"))
	}
	_, st := needs.On(node.Node, p.FilterTimeout)
	return st
}

// PostFilter gives back the devices of a claim that no pod uses yet: another node may have others for it. It says so
// only where it does.
func (p *Plugin) PostFilter(ctx context.Context, _ framework.Handle, state *framework.CycleState, pod *model.PodInfo,
	d *framework.Diagnosis) (string, *framework.Status) {
	if !claims(pod) {
		return "", framework.NewStatus(framework.Unschedulable)
	}
	if d.Prepare != nil && state.Read(Name) == nil {
		// The cycle's answers were kept ones: this state has not been filled yet.
		if needs, st := p.Devices.Needs(pod); st.IsSuccess() && !needs.None() {
			state.Write(Name, needs)
		}
	}
	needs, ok := state.Read(Name).(*devices.Needs)
	if !ok {
		return "", framework.NewStatus(framework.Unschedulable)
	}
	switch done, err := p.Devices.Deallocate(ctx, pod.Pod, needs); {
	case err != nil:
		return "", framework.AsStatus(err)
	case done:
		return "", framework.NewStatus(framework.Unschedulable, "deallocation of ResourceClaim completed")
	}
	return "", framework.NewStatus(framework.Unschedulable)
}

// reserved is where the state keeps what was chosen for the pod.
const reserved = Name + "/reserved"

// Reserve takes what the pod's claims get on the node.
func (p *Plugin) Reserve(_ context.Context, state *framework.CycleState, pod *model.PodInfo,
	name string) *framework.Status {
	if !claims(pod) {
		return nil
	}
	node := p.Node(name)
	if node == nil {
		return framework.AsStatus(fmt.Errorf("node %q is gone", name))
	}
	choice, st := p.Devices.Reserve(pod, node, p.FilterTimeout)
	if !st.IsSuccess() {
		return st
	}
	if !choice.None() {
		state.Write(reserved, choice)
	}
	return nil
}

// Unreserve gives back what is not bound yet.
func (p *Plugin) Unreserve(ctx context.Context, state *framework.CycleState, pod *model.PodInfo, _ string) {
	choice, ok := state.Read(reserved).(*devices.Choice)
	if !ok {
		return
	}
	p.Devices.Release(choice)
	if err := p.Devices.Unreserve(ctx, pod.Pod, choice); err != nil {
		p.Log.Warn("a claim stays reserved for a pod that was not bound", "pod", pod.Key(), "err", err)
	}
}

// Lingers where devices have to be made ready first.
func (*Plugin) Lingers(state *framework.CycleState, _ *model.PodInfo) bool {
	choice, ok := state.Read(reserved).(*devices.Choice)
	return ok && choice.Lingers()
}

// PreBind writes what was chosen, and waits until it is ready.
func (p *Plugin) PreBind(ctx context.Context, state *framework.CycleState, pod *model.PodInfo,
	_ string) *framework.Status {
	choice, ok := state.Read(reserved).(*devices.Choice)
	if !ok {
		return nil
	}
	err := p.Devices.Bind(ctx, pod.Pod, choice)
	if err == nil {
		err = p.Devices.Await(ctx, choice, p.BindingTimeout)
	}
	return framework.AsStatus(err)
}

// EventsToRegister: a claim of the pod changes, devices are given back, there are others, or the pod's claims were
// made.
func (*Plugin) EventsToRegister() []clusterevent.Interest {
	return []clusterevent.Interest{
		{Kind: clusterevent.ResourceClaim, Action: clusterevent.Update | clusterevent.Delete, When: freed},
		{Kind: clusterevent.ResourceClaim, Action: clusterevent.Add | clusterevent.Update,
			Reads: model.KeyOf(func(pod *model.PodInfo, k *model.Key) {
				k.ResourceClaims(pod)
			}),
			Hint: func(pod *model.PodInfo, e clusterevent.Event) bool {
				c, ok := e.New.(*resourcev1.ResourceClaim)
				return !ok || uses(pod, c)
			}},
		{Kind: clusterevent.DeviceClass, Action: clusterevent.Add | clusterevent.Update},
		{Kind: clusterevent.ResourceSlice, Action: clusterevent.Add | clusterevent.Update},
		{Kind: clusterevent.Node, Action: clusterevent.Add | clusterevent.UpdateLabels | clusterevent.UpdateTaints},
		{Kind: clusterevent.Node, Action: clusterevent.UpdateAllocatable,
			Reads: model.KeyOf(func(pod *model.PodInfo, k *model.Key) {
				k.Bool(devices.MayAsk(pod))
			}),
			// a device plug-in may be there now
			Hint: func(pod *model.PodInfo, _ clusterevent.Event) bool { return devices.MayAsk(pod) }},
		{Kind: clusterevent.TargetPod, Action: clusterevent.UpdateGeneratedClaims},
		{Kind: clusterevent.AssignedPod, Action: clusterevent.Delete, When: func(e clusterevent.Event) bool {
			gone, ok := e.Old.(*model.PodInfo)
			return !ok || claims(gone) // what it had reserved may be free again
		}},
	}
}

// freed reports whether a claim gave devices back.
func freed(e clusterevent.Event) bool {
	old, ok := e.Old.(*resourcev1.ResourceClaim)
	if !ok {
		return true
	}
	now, is := e.New.(*resourcev1.ResourceClaim)
	return old.Status.Allocation != nil && (!is || now.Status.Allocation == nil)
}

// uses reports whether a claim is the pod's.
func uses(pod *model.PodInfo, c *resourcev1.ResourceClaim) bool {
	if pod.Pod.Namespace != c.Namespace {
		return false
	}
	for _, pc := range pod.Pod.Spec.ResourceClaims {
		if pc.ResourceClaimName != nil && *pc.ResourceClaimName == c.Name {
			return true
		}
	}
	for _, s := range pod.Pod.Status.ResourceClaimStatuses {
		if s.ResourceClaimName != nil && *s.ResourceClaimName == c.Name {
			return true
		}
	}
	return false
}
