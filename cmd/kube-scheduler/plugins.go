package main

import (
	"fmt"
	"slices"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/plugins/defaultbinder"
	"bonsai/pkg/scheduler/plugins/imagelocality"
	"bonsai/pkg/scheduler/plugins/interpodaffinity"
	"bonsai/pkg/scheduler/plugins/nodeaffinity"
	"bonsai/pkg/scheduler/plugins/nodename"
	"bonsai/pkg/scheduler/plugins/nodeports"
	"bonsai/pkg/scheduler/plugins/noderesources"
	"bonsai/pkg/scheduler/plugins/nodeunschedulable"
	"bonsai/pkg/scheduler/plugins/podtopologyspread"
	"bonsai/pkg/scheduler/plugins/prioritysort"
	"bonsai/pkg/scheduler/plugins/schedulinggates"
	"bonsai/pkg/scheduler/plugins/tainttoleration"
	"bonsai/pkg/scheduler/preemption"
)

// pluginDeps is what plug-ins need of the outside.
type pluginDeps struct {
	binder     defaultbinder.Binder
	workloads  framework.Workloads
	namespaces framework.Namespaces
	preemption *preemption.Plugin
}

// available lists every plug-in, in the order of its calls and with its default weight.
func available(d pluginDeps, args map[string]pluginArgs) []framework.Enabled {
	strategy := noderesources.LeastAllocated
	if t := args[noderesources.FitName].ScoringStrategy.Type; t != "" {
		strategy = noderesources.Strategy(t)
	}
	spread := &podtopologyspread.Plugin{Workloads: d.workloads}
	if args[podtopologyspread.Name].DefaultingType == "List" {
		spread.Workloads = nil
	}
	hard := int32(1)
	if w := args[interpodaffinity.Name].HardPodAffinityWeight; w != nil {
		hard = *w
	}
	return []framework.Enabled{
		{Plugin: schedulinggates.Plugin{}},
		{Plugin: prioritysort.Plugin{}},
		{Plugin: nodeunschedulable.Plugin{}},
		{Plugin: nodename.Plugin{}},
		{Plugin: tainttoleration.Plugin{}, Weight: 3},
		{Plugin: nodeaffinity.Plugin{}, Weight: 2},
		{Plugin: nodeports.Plugin{}},
		{Plugin: noderesources.Fit{Strategy: strategy}, Weight: 1},
		{Plugin: spread, Weight: 2},
		{Plugin: &interpodaffinity.Plugin{Namespaces: d.namespaces, HardWeight: hard}, Weight: 2},
		{Plugin: noderesources.Balanced{}, Weight: 1},
		{Plugin: imagelocality.Plugin{}, Weight: 1},
		{Plugin: d.preemption},
		{Plugin: defaultbinder.Plugin{Client: d.binder}},
	}
}

// elsewhere are upstream's plug-ins whose work is not done here; naming them is no error.
var elsewhere = [...]string{"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone", "DynamicResources", "NodeDeclaredFeatures",
	"GangScheduling", "EBSLimits", "GCEPDLimits", "AzureDiskLimits"}

// enabled picks a profile's plug-ins. Enabling or disabling at a single extension point counts for the whole plug-in, but for
// "*" and weights at score.
func (p *profile) enabled(d pluginDeps) ([]framework.Enabled, error) {
	args := map[string]pluginArgs{}
	for _, c := range p.PluginConfig {
		args[c.Name] = c.Args
	}
	all := available(d, args)
	off, weights := map[string]bool{}, map[string]int64{}
	for point, set := range p.Plugins {
		for _, n := range set.Disabled {
			if n.Name == "*" && point == "multiPoint" {
				for _, e := range all {
					off[e.Plugin.Name()] = true
				}
			}
			off[n.Name] = true
		}
	}
	for point, set := range p.Plugins {
		for _, n := range set.Enabled {
			if !slices.ContainsFunc(all, func(e framework.Enabled) bool { return e.Plugin.Name() == n.Name }) && !slices.Contains(elsewhere[:], n.Name) {
				return nil, fmt.Errorf("profile %q: plugins.%s.enabled: %q does not exist", p.SchedulerName, point, n.Name)
			}
			off[n.Name] = false
			if n.Weight > 0 {
				weights[n.Name] = n.Weight
			}
		}
	}
	var out []framework.Enabled
	for _, e := range all {
		if off[e.Plugin.Name()] {
			continue
		}
		if w := weights[e.Plugin.Name()]; w > 0 {
			e.Weight = w
		}
		out = append(out, e)
	}
	return out, nil
}
