package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"bonsai/pkg/scheduler/config"
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/plugins/dynamicresources"
	"bonsai/pkg/scheduler/plugins/noderesources"
	"bonsai/pkg/scheduler/preemption"
	"bonsai/pkg/scheduler/profile"
)

// never is a time limit that no decision reaches: a filterTimeout of 0 sets none.
const never = 365 * 24 * time.Hour

// available returns every plug-in with the profile's arguments.
//
// The arguments are valid and complete: config.Validate has seen them.
func available(p *configv1.KubeSchedulerProfile, c plugins.Config) ([]profile.Enabled, error) {
	if !gives(p) {
		c.Fit.ByDevices = nil
	}
	for _, pc := range p.PluginConfig {
		switch args := pc.Args.Object.(type) {
		case *configv1.NodeResourcesFitArgs:
			c.Fit = fit(args, c.Fit)
		case *configv1.NodeResourcesBalancedAllocationArgs:
			for _, r := range args.Resources {
				c.Balanced.Resources = append(c.Balanced.Resources, corev1.ResourceName(r.Name))
			}
		case *configv1.NodeAffinityArgs:
			if err := addAffinity(&c, args.AddedAffinity); err != nil {
				return nil, err
			}
		case *configv1.InterPodAffinityArgs:
			c.HardPodAffinityWeight, c.IgnorePreferredTermsOfExistingPods = args.HardPodAffinityWeight,
				args.IgnorePreferredTermsOfExistingPods
		case *configv1.VolumeBindingArgs:
			c.BindTimeout, c.RoomScores = new(seconds(args.BindTimeoutSeconds)), points(args.Shape)
		case *configv1.DynamicResourcesArgs:
			c.FilterTimeout, c.BindingTimeout = cmp.Or(args.FilterTimeout.Duration, never), args.BindingTimeout.Duration
		case *configv1.PodTopologySpreadArgs:
			if args.DefaultingType == configv1.ListDefaulting {
				if c.SpreadBy = args.DefaultConstraints; len(c.SpreadBy) == 0 {
					c.Workloads = nil
				}
			}
		case *configv1.DefaultPreemptionArgs:
			if p, ok := c.Preemption.(*preemption.Plugin); ok {
				p.MinNodes, p.Percent = int(*args.MinCandidateNodesAbsolute), int(*args.MinCandidateNodesPercentage)
			}
		}
	}
	return plugins.Default(c), nil
}

// gives reports whether the profile gives devices to pods: if not, their resources must not be left to devices.
func gives(p *configv1.KubeSchedulerProfile) bool {
	sets := maps.Collect(config.Points(p.Plugins))
	multi := says(sets["multiPoint"], dynamicresources.Name, true)
	return says(sets[string(profile.FilterPoint)], dynamicresources.Name, multi) &&
		says(sets[string(profile.ReservePoint)], dynamicresources.Name, multi)
}

// fit is NodeResourcesFit with its arguments. It ignores what an extender manages alone, too.
func fit(args *configv1.NodeResourcesFitArgs, base noderesources.Fit) noderesources.Fit {
	s, f, managed := args.ScoringStrategy, base, base.Ignored
	f.Strategy = noderesources.Strategy(s.Type)
	for _, r := range s.Resources {
		f.Weights = append(f.Weights, noderesources.Weight{Name: corev1.ResourceName(r.Name), Weight: r.Weight})
	}
	if s.RequestedToCapacityRatio != nil {
		f.Shape = points(s.RequestedToCapacityRatio.Shape)
	}
	if len(args.IgnoredResources) > 0 || len(args.IgnoredResourceGroups) > 0 {
		f.Ignored = func(name corev1.ResourceName) bool {
			group, _, _ := strings.Cut(string(name), "/")
			return slices.Contains(args.IgnoredResources, string(name)) ||
				slices.Contains(args.IgnoredResourceGroups, group) || managed != nil && managed(name)
		}
	}
	return f
}

// points are those of a scoring function.
func points(list []configv1.UtilizationShapePoint) (out framework.Shape) {
	for _, p := range list {
		out = append(out, framework.ShapePoint{Utilization: int64(p.Utilization), Score: int64(p.Score)})
	}
	return out
}

// addAffinity makes the node affinity that a profile demands of every pod.
func addAffinity(c *plugins.Config, a *corev1.NodeAffinity) (err error) {
	if a == nil {
		return nil
	}
	if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		if c.Affinity.Required, err = nodeaffinity.NewNodeSelector(r); err != nil {
			return fmt.Errorf("parsing addedAffinity's required node affinity: %w", err)
		}
	}
	if p := a.PreferredDuringSchedulingIgnoredDuringExecution; len(p) > 0 {
		if c.Affinity.Preferred, err = nodeaffinity.NewPreferredSchedulingTerms(p); err != nil {
			return fmt.Errorf("parsing addedAffinity's preferred node affinity: %w", err)
		}
	}
	return nil
}

// elsewhere are upstream's plug-ins whose work is not done here; naming them is no error.
var elsewhere = [...]string{"GangScheduling", "EBSLimits", "GCEPDLimits", "AzureDiskLimits"}

// enabled picks a profile's plug-ins, and the extension points that each is called at. A point's own list takes
// precedence over multiPoint, and enabled over disabled. Plug-ins are called in the order of the default ones.
//
// A plug-in that ends up at no point is left out altogether, and with it its interests and fields.
func enabled(p *configv1.KubeSchedulerProfile, c plugins.Config) ([]profile.Enabled, error) {
	all, err := available(p, c)
	if err != nil {
		return nil, fmt.Errorf("profile %q: %w", *p.SchedulerName, err)
	}
	sets := maps.Collect(config.Points(p.Plugins))
	if err := known(sets, all); err != nil {
		return nil, fmt.Errorf("creating profile for scheduler name %s: %w", *p.SchedulerName, err)
	}
	var out []profile.Enabled
	for _, e := range all {
		name, called := e.Plugin.Name(), false
		multi := says(sets["multiPoint"], name, true)
		e.Off = map[profile.Point]bool{}
		for _, point := range profile.Points {
			e.Off[point] = !says(sets[string(point)], name, multi)
			called = called || point.Has(e.Plugin) && !e.Off[point]
		}
		for _, point := range []string{"multiPoint", "score"} {
			for _, n := range sets[point].Enabled {
				if n.Name == name && n.Weight != nil && *n.Weight > 0 {
					e.Weight = int64(*n.Weight)
				}
			}
		}
		if called {
			out = append(out, e)
		}
	}
	return out, nil
}

// says reports whether a set lets the plug-in of that name be called; without a word of it, what it was before.
func says(set configv1.PluginSet, name string, before bool) bool {
	named := func(n configv1.Plugin) bool { return n.Name == name }
	switch {
	case slices.ContainsFunc(set.Enabled, named):
		return true
	case slices.ContainsFunc(set.Disabled, func(n configv1.Plugin) bool { return n.Name == "*" || named(n) }):
		return false
	}
	return before
}

// known checks that every enabled plug-in exists, implements the point, and is named there once.
//
// Disabled plug-ins may be unknown: the file may be for several versions.
func known(sets map[string]configv1.PluginSet, all []profile.Enabled) error {
	for point, set := range sets {
		seen := map[string]bool{}
		for _, n := range set.Enabled {
			kind := strings.ToUpper(point[:1]) + point[1:] + "Plugin"
			i := slices.IndexFunc(all, func(e profile.Enabled) bool { return e.Plugin.Name() == n.Name })
			switch {
			case slices.Contains(elsewhere[:], n.Name):
			case i < 0:
				return fmt.Errorf("%s %q does not exist", kind, n.Name)
			case point != "multiPoint" && !profile.Point(point).Has(all[i].Plugin):
				return fmt.Errorf("plugin %q does not extend %s plugin", n.Name, kind)
			case seen[n.Name]:
				return fmt.Errorf("plugin %q already registered as %q", n.Name, kind)
			}
			seen[n.Name] = true
		}
	}
	return nil
}
