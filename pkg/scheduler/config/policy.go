package config

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"
)

// policy is the file by which schedulers were configured before KubeSchedulerConfiguration (kind Policy, version v1):
// predicates are what is called filters now, priorities what is called scores. A list that is left out stands for the
// plug-ins of today.
//
// Kubernetes removed it in v1.23. It is read because old installations still have such files; everything behind this
// file sees a KubeSchedulerConfiguration only.
type policy struct {
	metav1.TypeMeta                `json:",inline"`
	Predicates                     []predicate      `json:"predicates"`
	Priorities                     []priority       `json:"priorities"`
	Extenders                      []policyExtender `json:"extenders"`
	HardPodAffinitySymmetricWeight *int32           `json:"hardPodAffinitySymmetricWeight"`
	// AlwaysCheckAllPredicates has no effect: a node is refused for the first reason that is found.
	AlwaysCheckAllPredicates bool `json:"alwaysCheckAllPredicates"`
}

type predicate struct {
	Name     string             `json:"name"`
	Argument *predicateArgument `json:"argument"`
}

type predicateArgument struct {
	ServiceAffinity *struct {
		Labels []string `json:"labels"`
	} `json:"serviceAffinity"`
	LabelsPresence *struct {
		Labels   []string `json:"labels"`
		Presence bool     `json:"presence"`
	} `json:"labelsPresence"`
}

type priority struct {
	Name     string            `json:"name"`
	Weight   int64             `json:"weight"`
	Argument *priorityArgument `json:"argument"`
}

type priorityArgument struct {
	ServiceAntiAffinity *struct {
		Label string `json:"label"`
	} `json:"serviceAntiAffinity"`
	LabelPreference *struct {
		Label    string `json:"label"`
		Presence bool   `json:"presence"`
	} `json:"labelPreference"`
	RequestedToCapacityRatioArguments *struct {
		Shape     []configv1.UtilizationShapePoint `json:"shape"`
		Resources []configv1.ResourceSpec          `json:"resources"`
	} `json:"requestedToCapacityRatioArguments"`
}

// policyExtender differs from today's in two fields.
type policyExtender struct {
	URLPrefix      string                      `json:"urlPrefix"`
	FilterVerb     string                      `json:"filterVerb"`
	PreemptVerb    string                      `json:"preemptVerb"`
	PrioritizeVerb string                      `json:"prioritizeVerb"`
	Weight         int64                       `json:"weight"`
	BindVerb       string                      `json:"bindVerb"`
	EnableHTTPS    bool                        `json:"enableHttps"`
	TLSConfig      *configv1.ExtenderTLSConfig `json:"tlsConfig"`
	// HTTPTimeout is in nanoseconds.
	HTTPTimeout      time.Duration                      `json:"httpTimeout"`
	NodeCacheCapable bool                               `json:"nodeCacheCapable"`
	ManagedResources []configv1.ExtenderManagedResource `json:"managedResources"`
	Ignorable        bool                               `json:"ignorable"`
}

// avoidPods is the plug-in that only policies know.
const avoidPods = "NodePreferAvoidPods"

// Plug-ins that policies name.
const (
	fitPlugin      = "NodeResourcesFit"
	affinityPlugin = "NodeAffinity"
	spreadPlugin   = "PodTopologySpread"
	podsPlugin     = "InterPodAffinity"
	taintsPlugin   = "TaintToleration"
	openPlugin     = "NodeUnschedulable"
	limitsPlugin   = "NodeVolumeLimits"
)

// always are the plug-ins that each policy has: what was mandatory, and what came after policies, which none can have
// left out.
func always() []string {
	return []string{"SchedulingGates", "PrioritySort", openPlugin, taintsPlugin, "DynamicResources",
		"NodeDeclaredFeatures", "DefaultPreemption", "DefaultBinder"}
}

// predicates are today's filters by the names of predicates.
//
// Several names of one predicate come from different versions. Limits of the old in-tree volumes are those of their CSI
// drivers now.
func predicates() map[string][]string {
	// Conditions of nodes have become taints.
	conditions := []string{openPlugin, taintsPlugin}
	return map[string][]string{
		"PodFitsHostPorts": {"NodePorts"}, "PodFitsPorts": {"NodePorts"}, "PodFitsResources": {fitPlugin},
		"HostName": {"NodeName"}, "PodFitsHost": {"NodeName"},
		"MatchNodeSelector": {affinityPlugin},
		"GeneralPredicates": {fitPlugin, "NodeName", "NodePorts", affinityPlugin},
		"NoDiskConflict":    {"VolumeRestrictions"}, "NoVolumeZoneConflict": {"VolumeZone"},
		"CheckVolumeBinding": {"VolumeBinding"},
		"MaxEBSVolumeCount":  {limitsPlugin}, "MaxGCEPDVolumeCount": {limitsPlugin},
		"MaxAzureDiskVolumeCount": {limitsPlugin}, "MaxCinderVolumeCount": {limitsPlugin},
		"MaxCSIVolumeCountPred": {limitsPlugin}, "MaxCSIVolumeCount": {limitsPlugin},
		"MatchInterPodAffinity": {podsPlugin}, "EvenPodsSpread": {spreadPlugin},
		"PodToleratesNodeTaints": {taintsPlugin}, "PodToleratesNodeNoExecuteTaints": {taintsPlugin},
		"CheckNodeUnschedulable": {openPlugin}, "CheckNodeCondition": conditions, "CheckNodeMemoryPressure": conditions,
		"CheckNodeDiskPressure": conditions,
		"CheckNodePIDPressure":  conditions,
	}
}

// priorities are today's scores by the names of priorities, "" for one that makes no difference. Spreading by Services
// and controllers is what PodTopologySpread does for pods without constraints.
func priorities() map[string]string {
	return map[string]string{
		"SelectorSpreadPriority": spreadPlugin, "ServiceSpreadingPriority": spreadPlugin,
		"EvenPodsSpreadPriority":   spreadPlugin,
		"InterPodAffinityPriority": podsPlugin, "NodeAffinityPriority": affinityPlugin,
		"TaintTolerationPriority": taintsPlugin,
		"ImageLocalityPriority":   "ImageLocality", "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
		"LeastRequestedPriority": fitPlugin,
		"MostRequestedPriority":  fitPlugin, "RequestedToCapacityRatioPriority": fitPlugin,
		"NodePreferAvoidPodsPriority": avoidPods, "EqualPriority": "",
	}
}

// ReadPolicy reads the file of a policy, in YAML or JSON, and says it in today's words. Unknown fields, predicates and
// priorities are errors.
func ReadPolicy(path string) (*configv1.KubeSchedulerConfiguration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return decodePolicy(data)
}

// decodePolicy is ReadPolicy for the content of a file. All mistakes of the file are returned together.
func decodePolicy(data []byte) (*configv1.KubeSchedulerConfiguration, error) {
	p := &policy{}
	if err := yaml.UnmarshalStrict(data, p); err != nil {
		return nil, err
	}
	if p.Kind != "Policy" || p.APIVersion != "v1" {
		return nil, fmt.Errorf("apiVersion %q and kind %q, not v1 and Policy", p.APIVersion, p.Kind)
	}
	t := &translation{weights: map[string]int64{}}
	if p.Predicates == nil {
		t.filters = defaultFilters()
	}
	if p.Priorities == nil {
		t.weights = defaultScores()
	}
	var errs []error
	for i := range p.Predicates {
		errs = append(errs, t.predicate(&p.Predicates[i]))
	}
	for i := range p.Priorities {
		errs = append(errs, t.priority(&p.Priorities[i]))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if w := p.HardPodAffinitySymmetricWeight; w != nil {
		t.args = append(t.args, withArgs(podsPlugin, &configv1.InterPodAffinityArgs{HardPodAffinityWeight: w}))
	}
	c := &configv1.KubeSchedulerConfiguration{Extenders: t.extenders(p.Extenders),
		Profiles: []configv1.KubeSchedulerProfile{{Plugins: t.plugins(), PluginConfig: t.arguments()}}}
	setDefaults(c)
	return c, nil
}

// defaultFilters and defaultScores are what holds where a policy has no such list.
func defaultFilters() []string {
	return []string{"NodeName", affinityPlugin, "NodePorts", fitPlugin, "VolumeRestrictions", limitsPlugin,
		"VolumeBinding", "VolumeZone", spreadPlugin, podsPlugin}
}

func defaultScores() map[string]int64 {
	return map[string]int64{taintsPlugin: 3, affinityPlugin: 2, fitPlugin: 1, spreadPlugin: 2, podsPlugin: 2,
		"NodeResourcesBalancedAllocation": 1, "ImageLocality": 1}
}

// translation is a policy in today's words.
//
// It collects while the lists are read, and is turned into a profile at the end, because filters and scores of one
// plug-in may come from several entries.
type translation struct {
	filters  []string
	weights  map[string]int64 // of what scores
	labels   []corev1.NodeSelectorRequirement
	strategy *configv1.ScoringStrategy
	args     []configv1.PluginConfig
}

// predicate translates one predicate. One with an argument is a custom one: its name is free, and the argument decides.
func (t *translation) predicate(p *predicate) error {
	if a := p.Argument; a != nil {
		switch {
		case a.ServiceAffinity != nil && a.LabelsPresence != nil:
			return fmt.Errorf("predicate %q has two arguments", p.Name)
		case a.ServiceAffinity != nil:
			return fmt.Errorf("predicate %q: serviceAffinity is not supported: let pods say by affinity to pods, or by topology spread constraints, where a Service's pods are to be", p.Name)
		case a.LabelsPresence != nil:
			operator := corev1.NodeSelectorOpDoesNotExist
			if a.LabelsPresence.Presence {
				operator = corev1.NodeSelectorOpExists
			}
			for _, l := range a.LabelsPresence.Labels {
				t.labels = append(t.labels, corev1.NodeSelectorRequirement{Key: l, Operator: operator})
			}
			// The pods' own selectors hold with it: a kubelet would refuse pods against them.
			t.filters = append(t.filters, affinityPlugin)
			return nil
		}
	}
	names, ok := predicates()[p.Name]
	if !ok {
		return fmt.Errorf("invalid predicate name %q specified - no corresponding plug-in found", p.Name)
	}
	t.filters = append(t.filters, names...)
	return nil
}

// priority translates one priority; arguments are treated as those of predicates. What cannot be translated is refused,
// rather than left out: pods would be placed by another policy than the file says.
func (t *translation) priority(p *priority) error {
	if p.Weight <= 0 || p.Weight > maxWeight {
		return fmt.Errorf("priority %s should have a positive weight applied to it or it has overflown", p.Name)
	}
	if a := p.Argument; a != nil {
		switch {
		case a.ServiceAntiAffinity != nil:
			return fmt.Errorf("priority %q: serviceAntiAffinity is not supported: PodTopologySpread spreads by labels of nodes (defaultConstraints in a KubeSchedulerConfiguration)", p.Name)
		case a.LabelPreference != nil:
			return fmt.Errorf("priority %q: labelPreference is not supported: NodeAffinity prefers nodes by their labels (addedAffinity in a KubeSchedulerConfiguration)", p.Name)
		case a.RequestedToCapacityRatioArguments != nil:
			r := a.RequestedToCapacityRatioArguments
			return t.score(p, fitPlugin,
				&configv1.ScoringStrategy{Type: configv1.RequestedToCapacityRatio, Resources: r.Resources,
					RequestedToCapacityRatio: &configv1.RequestedToCapacityRatioParam{Shape: r.Shape}})
		}
	}
	name, ok := priorities()[p.Name]
	switch {
	case !ok:
		return fmt.Errorf("invalid priority name %q specified - no corresponding plug-in found", p.Name)
	case name == "":
		return nil
	}
	switch p.Name {
	case "LeastRequestedPriority":
		return t.score(p, name, &configv1.ScoringStrategy{Type: configv1.LeastAllocated})
	case "MostRequestedPriority":
		return t.score(p, name, &configv1.ScoringStrategy{Type: configv1.MostAllocated})
	case "RequestedToCapacityRatioPriority": // without a shape: the earlier plug-in's
		return t.score(p, name, &configv1.ScoringStrategy{Type: configv1.RequestedToCapacityRatio,
			RequestedToCapacityRatio: &configv1.RequestedToCapacityRatioParam{
				Shape: []configv1.UtilizationShapePoint{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}}}})
	}
	return t.score(p, name, nil)
}

// maxWeight is the most that priorities of one plug-in may weigh together.
const maxWeight = 1 << 24

// score has a plug-in score. Priorities that are one plug-in today weigh together, but nodes can be preferred by one
// strategy only.
func (t *translation) score(p *priority, plugin string, s *configv1.ScoringStrategy) error {
	if s != nil {
		if t.strategy != nil {
			return fmt.Errorf("priority %q: there is another one for the resources of nodes already (%s): one strategy at a time is supported", p.Name, t.strategy.Type)
		}
		t.strategy = s
	}
	if t.weights[plugin] += p.Weight; t.weights[plugin] > maxWeight {
		return fmt.Errorf("priority %s should have a positive weight applied to it or it has overflown", p.Name)
	}
	return nil
}

// plugins enables what filters and what scores, and each only for that.
//
// Everything is disabled first, so that the default plug-ins do not come on top. A plug-in that only filters is
// switched off for scoring, and the other way round; one that does both is enabled whole.
func (t *translation) plugins() *configv1.Plugins {
	out := &configv1.Plugins{MultiPoint: configv1.PluginSet{Disabled: []configv1.Plugin{{Name: "*"}}}}
	enabled := append(always(), t.filters...)
	for name := range t.weights {
		if !slices.Contains(enabled, name) {
			for _, set := range []*configv1.PluginSet{&out.PreFilter, &out.Filter, &out.Reserve, &out.PreBind} {
				set.Disabled = append(set.Disabled, configv1.Plugin{Name: name})
			}
		}
	}
	for _, name := range enabled {
		if t.weights[name] == 0 {
			for _, set := range []*configv1.PluginSet{&out.PreScore, &out.Score} {
				set.Disabled = append(set.Disabled, configv1.Plugin{Name: name})
			}
		}
	}
	for name := range t.weights {
		enabled = append(enabled, name)
	}
	slices.Sort(enabled)
	for _, name := range slices.Compact(enabled) {
		p := configv1.Plugin{Name: name}
		if w := t.weights[name]; w > 0 {
			p.Weight = new(int32(w))
		}
		out.MultiPoint.Enabled = append(out.MultiPoint.Enabled, p)
	}
	return out
}

func (t *translation) arguments() []configv1.PluginConfig {
	out := t.args
	if len(t.labels) > 0 {
		out = append(out, withArgs(affinityPlugin, &configv1.NodeAffinityArgs{AddedAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: t.labels}}}}}))
	}
	if t.strategy != nil {
		out = append(out, withArgs(fitPlugin, &configv1.NodeResourcesFitArgs{ScoringStrategy: t.strategy}))
	}
	return out
}

func withArgs(plugin string, args runtime.Object) configv1.PluginConfig {
	args.GetObjectKind().SetGroupVersionKind(configv1.SchemeGroupVersion.WithKind(plugin + "Args"))
	return configv1.PluginConfig{Name: plugin, Args: runtime.RawExtension{Object: args}}
}

func (*translation) extenders(list []policyExtender) (out []configv1.Extender) {
	for _, e := range list {
		out = append(out, configv1.Extender{URLPrefix: e.URLPrefix, FilterVerb: e.FilterVerb,
			PreemptVerb: e.PreemptVerb, PrioritizeVerb: e.PrioritizeVerb,
			Weight: e.Weight, BindVerb: e.BindVerb, EnableHTTPS: e.EnableHTTPS, TLSConfig: e.TLSConfig,
			HTTPTimeout:      metav1.Duration{Duration: e.HTTPTimeout},
			NodeCacheCapable: e.NodeCacheCapable, ManagedResources: e.ManagedResources, Ignorable: e.Ignorable})
	}
	return out
}
