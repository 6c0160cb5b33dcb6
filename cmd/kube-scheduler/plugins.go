package main

import (
	"fmt"
	"slices"
	"time"

	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/plugins/interpodaffinity"
	"bonsai/pkg/scheduler/plugins/noderesources"
	"bonsai/pkg/scheduler/plugins/podtopologyspread"
	"bonsai/pkg/scheduler/plugins/volumebinding"
)

// available returns every plug-in with the profile's arguments.
func (p *profile) available(c plugins.Config) []framework.Enabled {
	for _, pc := range p.PluginConfig {
		switch pc.Name {
		case noderesources.FitName:
			c.Strategy = noderesources.Strategy(pc.Args.ScoringStrategy.Type)
		case interpodaffinity.Name:
			c.HardPodAffinityWeight = pc.Args.HardPodAffinityWeight
		case volumebinding.Name:
			if s := pc.Args.BindTimeoutSeconds; s != nil {
				c.BindTimeout = new(time.Duration(*s) * time.Second)
			}
		case podtopologyspread.Name:
			if pc.Args.DefaultingType == "List" {
				c.Workloads = nil
			}
		}
	}
	return plugins.Default(c)
}

// elsewhere are upstream's plug-ins whose work is not done here; naming them is no error.
var elsewhere = [...]string{"DynamicResources", "NodeDeclaredFeatures",
	"GangScheduling", "EBSLimits", "GCEPDLimits", "AzureDiskLimits"}

// enabled picks a profile's plug-ins. Enabling or disabling at a single extension point counts for the whole plug-in, except for
// "*" and weights at score.
func (p *profile) enabled(c plugins.Config) ([]framework.Enabled, error) {
	all := p.available(c)
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
