package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

const policyHeader = "apiVersion: v1\nkind: Policy\n"

// TestPolicy: which plug-ins of today filter, and which score with which weight.
func TestPolicy(t *testing.T) {
	t.Parallel()
	const mandatory = "DefaultBinder DefaultPreemption DynamicResources NodeDeclaredFeatures NodeUnschedulable PrioritySort SchedulingGates TaintToleration"
	for _, c := range []struct{ name, policy, filters, scores string }{
		{"nothing", "predicates: []\npriorities: []", mandatory, ""},
		{"old names of one plug-in",
			"predicates: [{name: GeneralPredicates},{name: PodFitsHostPorts},{name: HostName},{name: MatchNodeSelector},{name: PodFitsResources}]\npriorities: []",
			mandatory + " NodeAffinity NodeName NodePorts NodeResourcesFit", ""},
		{"conditions and limits",
			"predicates: [{name: CheckNodeMemoryPressure},{name: CheckNodeCondition},{name: MaxEBSVolumeCount},{name: MaxGCEPDVolumeCount},{name: MaxAzureDiskVolumeCount},{name: MaxCSIVolumeCountPred}]\npriorities: []",
			mandatory + " NodeVolumeLimits", ""},
		{"volumes and pods", "predicates: [{name: NoDiskConflict},{name: NoVolumeZoneConflict},{name: CheckVolumeBinding},{name: MatchInterPodAffinity},{name: EvenPodsSpread},{name: PodToleratesNodeTaints}]\npriorities: []",
			mandatory + " InterPodAffinity PodTopologySpread VolumeBinding VolumeRestrictions VolumeZone", ""},
		{"scores only", "predicates: []\npriorities: [{name: LeastRequestedPriority, weight: 1},{name: BalancedResourceAllocation, weight: 2},{name: NodeAffinityPriority, weight: 3},{name: TaintTolerationPriority, weight: 4},{name: EqualPriority, weight: 1}]",
			mandatory, "NodeAffinity=3 NodeResourcesBalancedAllocation=2 NodeResourcesFit=1 TaintToleration=4"},
		{"spreading", "predicates: []\npriorities: [{name: SelectorSpreadPriority, weight: 1},{name: ServiceSpreadingPriority, weight: 1},{name: EvenPodsSpreadPriority, weight: 2},{name: InterPodAffinityPriority, weight: 5},{name: ImageLocalityPriority, weight: 6}]",
			mandatory, "ImageLocality=6 InterPodAffinity=5 PodTopologySpread=4"},
		{"pods to avoid", "predicates: []\npriorities: [{name: NodePreferAvoidPodsPriority, weight: 10000}]", mandatory,
			"NodePreferAvoidPods=10000"},
		{"lists that are left out", "",
			mandatory + " InterPodAffinity NodeAffinity NodeName NodePorts NodeResourcesFit NodeVolumeLimits PodTopologySpread VolumeBinding VolumeRestrictions VolumeZone",
			"ImageLocality=1 InterPodAffinity=2 NodeAffinity=2 NodeResourcesBalancedAllocation=1 NodeResourcesFit=1 PodTopologySpread=2 TaintToleration=3"},
	} {
		got, err := decodePolicy([]byte(policyHeader + c.policy))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if err := Validate(got).ToAggregate(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		p := got.Profiles[0].Plugins
		off := func(set configv1.PluginSet, name string) bool {
			return slices.ContainsFunc(set.Disabled, func(p configv1.Plugin) bool { return p.Name == name })
		}
		var filters, scores []string
		for _, e := range p.MultiPoint.Enabled {
			if !off(p.Filter, e.Name) {
				filters = append(filters, e.Name)
			}
			if !off(p.Score, e.Name) {
				scores = append(scores, fmt.Sprintf("%s=%d", e.Name, *e.Weight))
			}
		}
		want := strings.Fields(c.filters)
		slices.Sort(want)
		if !slices.Equal(filters, want) || strings.Join(scores, " ") != c.scores {
			t.Errorf("%s: filters %q, scores %q; want %q and %q", c.name, filters, scores, want, c.scores)
		}
		if *got.Profiles[0].SchedulerName != DefaultSchedulerName || len(p.MultiPoint.Disabled) != 1 ||
			p.MultiPoint.Disabled[0].Name != "*" {
			t.Errorf("%s: profile %+v", c.name, got.Profiles[0])
		}
	}
}

func TestPolicyArguments(t *testing.T) {
	t.Parallel()
	got, err := decodePolicy(
		[]byte(`{"kind": "Policy", "apiVersion": "v1", "hardPodAffinitySymmetricWeight": 7, "alwaysCheckAllPredicates": true,
		"predicates": [{"name": "HasDisk", "argument": {"labelsPresence": {"labels": ["disk", "rack"], "presence": true}}}, {"name": "NotOld", "argument": {"labelsPresence": {"labels": ["old"]}}}],
		"priorities": [{"name": "Ratio", "weight": 2, "argument": {"requestedToCapacityRatioArguments": {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}], "resources": [{"name": "example.com/gpu", "weight": 3}]}}}],
		"extenders": [{"urlPrefix": "http://127.0.0.1:12346/scheduler", "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 5, "enableHttps": true, "httpTimeout": 100000000, "nodeCacheCapable": true,
			"managedResources": [{"name": "example.com/foo", "ignoredByScheduler": true}], "ignorable": true, "tlsConfig": {"insecure": true}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := Validate(got).ToAggregate(); err != nil {
		t.Error(err)
	}
	var said []string
	for _, pc := range got.Profiles[0].PluginConfig {
		switch a := pc.Args.Object.(type) {
		case *configv1.InterPodAffinityArgs:
			said = append(said, fmt.Sprint("hard ", *a.HardPodAffinityWeight))
		case *configv1.NodeAffinityArgs:
			required := a.AddedAffinity.RequiredDuringSchedulingIgnoredDuringExecution
			for _, e := range required.NodeSelectorTerms[0].MatchExpressions {
				said = append(said, e.Key+" "+string(e.Operator))
			}
		case *configv1.NodeResourcesFitArgs:
			s := a.ScoringStrategy
			said = append(said, fmt.Sprint(s.Type, s.Resources, s.RequestedToCapacityRatio.Shape))
		}
	}
	want := []string{"hard 7", "disk Exists", "rack Exists", "old DoesNotExist",
		"RequestedToCapacityRatio[{example.com/gpu 3}] [{0 0} {100 10}]"}
	if !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
	e := got.Extenders[0]
	if e.URLPrefix != "http://127.0.0.1:12346/scheduler" || e.FilterVerb != "filter" ||
		e.PrioritizeVerb != "prioritize" || e.Weight != 5 || !e.EnableHTTPS ||
		e.HTTPTimeout.Duration != 100*time.Millisecond ||
		!e.NodeCacheCapable || !e.Ignorable || !e.TLSConfig.Insecure || len(e.ManagedResources) != 1 ||
		!e.ManagedResources[0].IgnoredByScheduler {
		t.Errorf("extender %+v", e)
	}
}

func TestRefusedPolicies(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{
		"predicates: [{name: Nonsense},{name: Foo}]":                                                                              "invalid predicate name \"Nonsense\" specified - no corresponding plug-in found\ninvalid predicate name \"Foo\" specified - no corresponding plug-in found",
		"priorities: [{name: Nonsense, weight: 1}]":                                                                               `invalid priority name "Nonsense" specified - no corresponding plug-in found`,
		"priorities: [{name: LeastRequestedPriority}]":                                                                            "priority LeastRequestedPriority should have a positive weight applied to it or it has overflown",
		"priorities: [{name: EqualPriority, weight: 9223372036854775807}]":                                                        "priority EqualPriority should have a positive weight applied to it or it has overflown",
		"priorities: [{name: LeastRequestedPriority, weight: 1},{name: MostRequestedPriority, weight: 1}]":                        `priority "MostRequestedPriority": there is another one for the resources of nodes already (LeastAllocated)`,
		"predicates: [{name: A, argument: {serviceAffinity: {labels: [region]}}}]":                                                `predicate "A": serviceAffinity is not supported`,
		"priorities: [{name: A, weight: 1, argument: {serviceAntiAffinity: {label: zone}}}]":                                      `priority "A": serviceAntiAffinity is not supported`,
		"priorities: [{name: A, weight: 1, argument: {labelPreference: {label: zone, presence: true}}}]":                          `priority "A": labelPreference is not supported`,
		"predicates: [{name: A, argument: {serviceAffinity: {labels: [region]}, labelsPresence: {labels: [a], presence: true}}}]": `predicate "A" has two arguments`,
		"foo: 1": `unknown field "foo"`,
		"predicates: [{name: A, argument: {labelPresence: {}}}]": `unknown field "labelPresence"`,
	} {
		if _, err := decodePolicy([]byte(policyHeader + policy)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", policy, err, want)
		}
	}
	if _, err := decodePolicy([]byte(header)); err == nil || !strings.Contains(err.Error(), "not v1 and Policy") {
		t.Errorf("a configuration as a policy: %v", err)
	}
}
