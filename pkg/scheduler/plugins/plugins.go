// Package plugins lists the scheduler's plug-ins: explicitly, in the order of their calls and with their default
// weights.
package plugins

import (
	"cmp"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/plugins/defaultbinder"
	"bonsai/pkg/scheduler/plugins/dynamicresources"
	"bonsai/pkg/scheduler/plugins/imagelocality"
	"bonsai/pkg/scheduler/plugins/interpodaffinity"
	"bonsai/pkg/scheduler/plugins/nodeaffinity"
	"bonsai/pkg/scheduler/plugins/nodedeclaredfeatures"
	"bonsai/pkg/scheduler/plugins/nodename"
	"bonsai/pkg/scheduler/plugins/nodeports"
	"bonsai/pkg/scheduler/plugins/nodepreferavoidpods"
	"bonsai/pkg/scheduler/plugins/noderesources"
	"bonsai/pkg/scheduler/plugins/nodeunschedulable"
	"bonsai/pkg/scheduler/plugins/nodevolumelimits"
	"bonsai/pkg/scheduler/plugins/podtopologyspread"
	"bonsai/pkg/scheduler/plugins/prioritysort"
	"bonsai/pkg/scheduler/plugins/schedulinggates"
	"bonsai/pkg/scheduler/plugins/tainttoleration"
	"bonsai/pkg/scheduler/plugins/volumebinding"
	"bonsai/pkg/scheduler/plugins/volumerestrictions"
	"bonsai/pkg/scheduler/plugins/volumezone"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/volumes"
)

// Config is what plug-ins need of the outside.
type Config struct {
	Binder     defaultbinder.Binder
	Namespaces framework.Namespaces
	// Workloads finds the pods to spread by default; nil spreads only by the pods' own constraints.
	Workloads framework.Workloads
	// Preemption is called when a pod fits nowhere; it may be nil.
	Preemption framework.PostFilter
	// Fit is NodeResourcesFit with its arguments; the zero value has upstream's defaults.
	Fit noderesources.Fit
	// Balanced is NodeResourcesBalancedAllocation with its arguments.
	Balanced noderesources.Balanced
	// Affinity is NodeAffinity with its arguments.
	Affinity nodeaffinity.Plugin
	// Volumes knows the claims of pods, and Node the nodes; nil: claims are not looked at. BindTimeout is how long
	// volumes may take to be bound, nil for the default; RoomScores scores the used part of the room for claims,
	// likewise.
	Volumes     *volumes.Volumes
	Node        func(name string) *corev1.Node
	BindTimeout *time.Duration
	RoomScores  framework.Shape
	// IgnorePreferredTermsOfExistingPods lets running pods' preferred affinity not count in the score of a pod that has
	// none.
	IgnorePreferredTermsOfExistingPods bool
	// SpreadBy replaces upstream's constraints for pods that have none; nil: those.
	SpreadBy []corev1.TopologySpreadConstraint
	// Devices knows the ResourceClaims of pods; nil means that they are ignored. Log gets what could not be undone.
	Devices *devices.Devices
	// FilterTimeout and BindingTimeout are those of DynamicResources; 0: its defaults.
	FilterTimeout, BindingTimeout time.Duration
	Log                           *slog.Logger
	// AvoidPods adds NodePreferAvoidPods, which only policies know.
	AvoidPods bool
	// HardPodAffinityWeight is what running pods' required affinity counts in the score of InterPodAffinity; nil is 1.
	HardPodAffinityWeight *int32
}

// Default returns all plug-ins.
func Default(c Config) []profile.Enabled {
	hard := int32(1)
	if c.HardPodAffinityWeight != nil {
		hard = *c.HardPodAffinityWeight
	}
	list := []profile.Enabled{
		{Plugin: schedulinggates.Plugin{}},
		{Plugin: prioritysort.Plugin{}},
		{Plugin: nodename.Plugin{}},
		{Plugin: nodeunschedulable.Plugin{}},
		{Plugin: tainttoleration.Plugin{}, Weight: 3},
		{Plugin: c.Affinity, Weight: 2},
		{Plugin: nodeports.Plugin{}},
		{Plugin: c.Fit, Weight: 1},
	}
	if c.Volumes != nil {
		list = append(list, profile.Enabled{Plugin: volumerestrictions.Plugin{Volumes: c.Volumes}},
			profile.Enabled{Plugin: nodevolumelimits.Plugin{Volumes: c.Volumes}},
			profile.Enabled{Plugin: &volumebinding.Plugin{Volumes: c.Volumes, Node: c.Node,
				BindTimeout: c.BindTimeout, Shape: c.RoomScores}, Weight: 1},
			profile.Enabled{Plugin: volumezone.Plugin{Volumes: c.Volumes}})
	}
	list = append(list, profile.Enabled{Plugin: &podtopologyspread.Plugin{Workloads: c.Workloads, Defaults: c.SpreadBy},
		Weight: 2},
		profile.Enabled{Plugin: &interpodaffinity.Plugin{Namespaces: c.Namespaces, HardWeight: hard,
			IgnorePreferred: c.IgnorePreferredTermsOfExistingPods}, Weight: 2})
	// Before preemption: it is better to give idle devices back than to evict pods.
	if c.Devices != nil {
		list = append(list, profile.Enabled{
			Plugin: &dynamicresources.Plugin{Devices: c.Devices,
				FilterTimeout:  cmp.Or(c.FilterTimeout, dynamicresources.DefaultFilterTimeout),
				BindingTimeout: cmp.Or(c.BindingTimeout, dynamicresources.DefaultBindingTimeout), Node: c.Node,
				Log: c.Log}, Weight: 2})
	}
	list = append(list, []profile.Enabled{
		{Plugin: nodedeclaredfeatures.New()},
		{Plugin: c.Balanced, Weight: 1},
		{Plugin: imagelocality.Plugin{}, Weight: 1},
	}...)
	if c.AvoidPods {
		list = append(list, profile.Enabled{Plugin: nodepreferavoidpods.Plugin{}, Weight: 10000})
	}
	if c.Preemption != nil {
		list = append(list, profile.Enabled{Plugin: c.Preemption})
	}
	return append(list, profile.Enabled{Plugin: defaultbinder.Plugin{Client: c.Binder}})
}
