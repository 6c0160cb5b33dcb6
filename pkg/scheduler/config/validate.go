package config

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"bonsai/api/quantity"
)

// Validate returns everything that is wrong with c, which has its defaults, in upstream's words.
//
// It stops at nothing: a user sees all mistakes of a file at once.
func Validate(c *configv1.KubeSchedulerConfiguration) field.ErrorList {
	var errs field.ErrorList
	if *c.Parallelism <= 0 {
		errs = append(errs, field.Invalid(field.NewPath("parallelism"), *c.Parallelism,
			"should be an integer value greater than zero"))
	}
	errs = append(errs, profiles(c.Profiles)...)
	errs = append(errs, percentage(c.PercentageOfNodesToScore, field.NewPath("percentageOfNodesToScore"))...)
	if *c.PodInitialBackoffSeconds <= 0 {
		errs = append(errs, field.Invalid(field.NewPath("podInitialBackoffSeconds"), *c.PodInitialBackoffSeconds,
			"must be greater than 0"))
	}
	if *c.PodMaxBackoffSeconds < *c.PodInitialBackoffSeconds {
		errs = append(errs, field.Invalid(field.NewPath("podMaxBackoffSeconds"), *c.PodMaxBackoffSeconds,
			"must be greater than or equal to PodInitialBackoffSeconds"))
	}
	return append(errs, extenders(c.Extenders)...)
}

func percentage(p *int32, at *field.Path) field.ErrorList {
	if p != nil && (*p < 0 || *p > 100) {
		return field.ErrorList{field.Invalid(at, *p, "not in valid range [0-100]")}
	}
	return nil
}

// profiles checks names, which must be unique because a pod chooses by them, and that all have the same queue sort.
func profiles(list []configv1.KubeSchedulerProfile) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range list {
		p, at := &list[i], field.NewPath("profiles").Index(i)
		switch name := *p.SchedulerName; {
		case name == "":
			errs = append(errs, field.Required(at.Child("schedulerName"), ""))
		case names.Has(name):
			errs = append(errs, field.Duplicate(at.Child("schedulerName"), name))
		}
		names.Insert(*p.SchedulerName)
		errs = append(errs, percentage(p.PercentageOfNodesToScore, at.Child("percentageOfNodesToScore"))...)
		sort := at.Child("plugins", "queueSort")
		if n := len(p.Plugins.QueueSort.Enabled); n > 1 {
			errs = append(errs, field.Invalid(sort.Child("Enabled"), n, "only one queue sort plugin can be enabled"))
		}
		if first := &list[0]; !equality.Semantic.DeepEqual(p.Plugins.QueueSort, first.Plugins.QueueSort) {
			// the pods of all wait in one queue
			errs = append(errs, field.Invalid(sort, p.Plugins.QueueSort, "must be the same for all profiles"))
		}
		errs = append(errs, arguments(p.PluginConfig, at.Child("pluginConfig"))...)
	}
	return errs
}

// arguments checks the arguments of plug-ins by their type. A second entry for a plug-in is refused, since one would
// win silently.
func arguments(list []configv1.PluginConfig, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, pc := range list {
		if seen.Has(pc.Name) {
			errs = append(errs, field.Duplicate(at.Index(i), pc.Name))
			continue
		}
		seen.Insert(pc.Name)
		args := at.Index(i).Child("args")
		switch a := pc.Args.Object.(type) {
		case *configv1.DefaultPreemptionArgs:
			if p := *a.MinCandidateNodesPercentage; p < 0 || p > 100 {
				errs = append(errs, field.Invalid(args.Child("minCandidateNodesPercentage"), p,
					"not in valid range [0, 100]"))
			}
			if n := *a.MinCandidateNodesAbsolute; n < 0 {
				errs = append(errs, field.Invalid(args.Child("minCandidateNodesAbsolute"), n,
					"not in valid range [0, inf)"))
			}
			if *a.MinCandidateNodesPercentage == 0 && *a.MinCandidateNodesAbsolute == 0 {
				errs = append(errs, field.Invalid(args.Child("minCandidateNodesPercentage"), 0,
					"cannot be zero at the same time as minCandidateNodesAbsolute"))
			}
		case *configv1.InterPodAffinityArgs:
			if w := *a.HardPodAffinityWeight; w < 0 || w > 100 {
				errs = append(errs, field.Invalid(args.Child("hardPodAffinityWeight"), w,
					"not in valid range [0, 100]"))
			}
		case *configv1.VolumeBindingArgs:
			if s := *a.BindTimeoutSeconds; s < 0 {
				errs = append(errs, field.Invalid(args.Child("bindTimeoutSeconds"), s,
					"invalid BindTimeoutSeconds, should not be a negative value"))
			}
			errs = append(errs, shape(a.Shape, args.Child("shape"))...)
		case *configv1.DynamicResourcesArgs:
			if t := a.FilterTimeout.Duration; t < 0 {
				errs = append(errs, field.Invalid(args.Child("filterTimeout"), t.String(), "must be zero or positive"))
			}
			if t := a.BindingTimeout.Duration; t < time.Second {
				errs = append(errs, field.Invalid(args.Child("bindingTimeout"), t.String(),
					"must be at least 1 second"))
			}
		case *configv1.NodeAffinityArgs:
			errs = append(errs, addedAffinity(a.AddedAffinity, args.Child("addedAffinity"))...)
		case *configv1.NodeResourcesBalancedAllocationArgs:
			for j, r := range a.Resources {
				if r.Weight != 1 {
					errs = append(errs, field.Invalid(args.Child("resources").Index(j).Child("weight"), r.Weight,
						"must be 1"))
				}
			}
		case *configv1.NodeResourcesFitArgs:
			errs = append(errs, fit(a, args)...)
		case *configv1.PodTopologySpreadArgs:
			errs = append(errs, spread(a, args)...)
		}
	}
	return errs
}

func fit(a *configv1.NodeResourcesFitArgs, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range a.IgnoredResources {
		for _, why := range validation.IsQualifiedName(name) {
			errs = append(errs, field.Invalid(at.Child("ignoredResources").Index(i), name, why))
		}
	}
	for i, group := range a.IgnoredResourceGroups {
		p := at.Child("ignoredResourceGroups").Index(i)
		if strings.Contains(group, "/") {
			errs = append(errs, field.Invalid(p, group, "resource group name can't contain '/'"))
			continue
		}
		for _, why := range validation.IsQualifiedName(group) {
			errs = append(errs, field.Invalid(p, group, why))
		}
	}
	s, p := a.ScoringStrategy, at.Child("scoringStrategy")
	for i, r := range s.Resources {
		if r.Weight < 1 || r.Weight > 100 {
			errs = append(errs, field.Invalid(p.Child("resources").Index(i).Child("weight"), r.Weight,
				fmt.Sprintf("resource weight of %v not in valid range (0, 100]", r.Name)))
		}
	}
	switch s.Type {
	case configv1.LeastAllocated, configv1.MostAllocated:
	case configv1.RequestedToCapacityRatio:
		if s.RequestedToCapacityRatio == nil {
			return append(errs, field.Required(p.Child("requestedToCapacityRatio"),
				"must be specified when type is RequestedToCapacityRatio"))
		}
		list, q := s.RequestedToCapacityRatio.Shape, p.Child("requestedToCapacityRatio", "shape")
		if len(list) == 0 {
			return append(errs, field.Required(q, "at least one point must be specified"))
		}
		errs = append(errs, shape(list, q)...)
	default:
		errs = append(errs, field.NotSupported(p.Child("type"), s.Type,
			[]configv1.ScoringStrategyType{configv1.LeastAllocated, configv1.MostAllocated,
				configv1.RequestedToCapacityRatio}))
	}
	return errs
}

// shape checks points of a scoring function.
//
// Points must rise in utilization, so that between two of them there is exactly one line.
func shape(list []configv1.UtilizationShapePoint, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, point := range list {
		if point.Utilization < 0 || point.Utilization > 100 {
			errs = append(errs, field.Invalid(at.Index(i).Child("utilization"), point.Utilization,
				"not in valid range [0, 100]"))
		}
		if i > 0 && point.Utilization <= list[i-1].Utilization {
			errs = append(errs, field.Invalid(at.Index(i).Child("utilization"), point.Utilization,
				"values must be sorted in increasing order"))
		}
	}
	for i, point := range list {
		if point.Score < 0 || point.Score > 10 {
			errs = append(errs, field.Invalid(at.Index(i).Child("score"), point.Score, "not in valid range [0, 10]"))
		}
	}
	return errs
}

func addedAffinity(a *corev1.NodeAffinity, at *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	var errs field.ErrorList
	if r := a.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		if _, err := nodeaffinity.NewNodeSelector(r,
			field.WithPath(at.Child("requiredDuringSchedulingIgnoredDuringExecution"))); err != nil {
			errs = append(errs, field.Invalid(at.Child("requiredDuringSchedulingIgnoredDuringExecution"), r,
				err.Error()))
		}
	}
	if p := a.PreferredDuringSchedulingIgnoredDuringExecution; len(p) > 0 {
		if _, err := nodeaffinity.NewPreferredSchedulingTerms(p,
			field.WithPath(at.Child("preferredDuringSchedulingIgnoredDuringExecution"))); err != nil {
			errs = append(errs, field.Invalid(at.Child("preferredDuringSchedulingIgnoredDuringExecution"), p,
				err.Error()))
		}
	}
	return errs
}

func spread(a *configv1.PodTopologySpreadArgs, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t := a.DefaultingType; t != configv1.SystemDefaulting && t != configv1.ListDefaulting {
		errs = append(errs, field.NotSupported(at.Child("defaultingType"), t,
			[]configv1.PodTopologySpreadConstraintsDefaulting{configv1.SystemDefaulting, configv1.ListDefaulting}))
	} else if t == configv1.SystemDefaulting && len(a.DefaultConstraints) > 0 {
		errs = append(errs, field.Invalid(at.Child("defaultingType"), t, "when .defaultConstraints are not empty"))
	}
	for i, c := range a.DefaultConstraints {
		p := at.Child("defaultConstraints").Index(i)
		if c.MaxSkew <= 0 {
			errs = append(errs, field.Invalid(p.Child("maxSkew"), c.MaxSkew, "not in valid range (0, inf)"))
		}
		if c.TopologyKey == "" {
			errs = append(errs, field.Required(p.Child("topologyKey"), "can not be empty"))
		} else {
			for _, why := range validation.IsQualifiedName(c.TopologyKey) {
				errs = append(errs, field.Invalid(p.Child("topologyKey"), c.TopologyKey, why))
			}
		}
		if w := c.WhenUnsatisfiable; w != corev1.DoNotSchedule && w != corev1.ScheduleAnyway {
			errs = append(errs, field.NotSupported(p.Child("whenUnsatisfiable"), w,
				[]corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway}))
		}
		if c.LabelSelector != nil {
			errs = append(errs, field.Forbidden(p.Child("labelSelector"),
				"constraint must not define a selector, as they deduced for each pod"))
		}
		for j := range i {
			if o := a.DefaultConstraints[j]; o.TopologyKey == c.TopologyKey &&
				o.WhenUnsatisfiable == c.WhenUnsatisfiable {
				errs = append(errs, field.Duplicate(p, fmt.Sprintf("{%s, %s}", c.TopologyKey, c.WhenUnsatisfiable)))
			}
		}
	}
	return errs
}

func extenders(list []configv1.Extender) field.ErrorList {
	var errs field.ErrorList
	at, binders, managed := field.NewPath("extenders"), 0, sets.New[string]()
	for i := range list {
		e, p := &list[i], at.Index(i)
		if e.PrioritizeVerb != "" && e.Weight <= 0 {
			errs = append(errs, field.Invalid(p.Child("weight"), e.Weight, "must have a positive weight applied to it"))
		}
		if e.BindVerb != "" {
			binders++
		}
		for j, r := range e.ManagedResources {
			name := p.Child("managedResources").Index(j).Child("name")
			if !quantity.IsExtended(corev1.ResourceName(r.Name)) {
				errs = append(errs, field.Invalid(name, r.Name, "is an invalid extended resource name"))
			}
			if managed.Has(r.Name) {
				errs = append(errs, field.Invalid(name, r.Name, "duplicate extender managed resource name"))
			}
			managed.Insert(r.Name)
		}
	}
	if binders > 1 {
		errs = append(errs, field.Invalid(at, fmt.Sprintf("found %d extenders implementing bind", binders),
			"only one extender can implement bind"))
	}
	return errs
}
