package config

import (
	"strings"
	"testing"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// args is a file with the arguments of one plug-in.
func args(plugin, args string) string {
	return "profiles: [{schedulerName: a, pluginConfig: [{name: " + plugin + ", args: " + args + "}]}]"
}

// TestRefusals: what kube-scheduler 1.36.3 says of the same files.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"foo: 1": `strict decoding error: unknown field "foo"`,
		args("NodeResourcesFit",
			"{bar: 1}"): `strict decoding error: decoding .profiles[0].pluginConfig[0]: strict decoding error: ` +
			`decoding args for plugin NodeResourcesFit: strict decoding error: unknown field "bar"`,
		`extenders: [{prioritizeVerb: p}]`: `extenders[0].weight: Invalid value: 0: must have a positive weight applied to it`,
		`extenders: [{urlPrefix: "http://x", bindVerb: a},{urlPrefix: "http://y", bindVerb: b}]`: `extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind`,
		`extenders: [{urlPrefix: "http://x", filterVerb: f, managedResources: [{name: cpu},{name: "a.b/c"},{name: "a.b/c"}]}]`: `[extenders[0].managedResources[0].name: Invalid value: "cpu": ` +
			`is an invalid extended resource name, extenders[0].managedResources[2].name: Invalid value: "a.b/c": duplicate extender managed resource name]`,
		"parallelism: 0":                                               `parallelism: Invalid value: 0: should be an integer value greater than zero`,
		"percentageOfNodesToScore: 101":                                `percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]`,
		"podInitialBackoffSeconds: 0":                                  `podInitialBackoffSeconds: Invalid value: 0: must be greater than 0`,
		"podInitialBackoffSeconds: 20":                                 `podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds`,
		"profiles: [{}, {schedulerName: a}]":                           `profiles[0].schedulerName: Required value`,
		"profiles: [{schedulerName: a, percentageOfNodesToScore: -1}]": `profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]`,
		"profiles: [{schedulerName: a, pluginConfig: [{name: NodeResourcesFit},{name: NodeResourcesFit}]}]":     `profiles[0].pluginConfig[1]: Duplicate value: "NodeResourcesFit"`,
		"profiles: [{schedulerName: a, plugins: {queueSort: {enabled: [{name: PrioritySort},{name: Other}]}}}]": `profiles[0].plugins.queueSort.Enabled: Invalid value: 2: only one queue sort plugin can be enabled`,
		args("InterPodAffinity",
			"{hardPodAffinityWeight: 101}"): `profiles[0].pluginConfig[0].args.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]`,
		args("DefaultPreemption",
			"{minCandidateNodesPercentage: 101, minCandidateNodesAbsolute: -1}"): `[profiles[0].pluginConfig[0].args.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100], ` +
			`profiles[0].pluginConfig[0].args.minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)]`,
		args("PodTopologySpread",
			`{defaultingType: Foo, defaultConstraints: [{maxSkew: 0, topologyKey: "", whenUnsatisfiable: X, labelSelector: {}}]}`): `[profiles[0].pluginConfig[0].args.defaultingType: Unsupported value: "Foo": supported values: "System", "List", ` +
			`profiles[0].pluginConfig[0].args.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf), profiles[0].pluginConfig[0].args.defaultConstraints[0].topologyKey: Required value: can not be empty, ` +
			`profiles[0].pluginConfig[0].args.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "X": supported values: "DoNotSchedule", "ScheduleAnyway", ` +
			`profiles[0].pluginConfig[0].args.defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod]`,
		args("PodTopologySpread",
			`{defaultConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]}`): `profiles[0].pluginConfig[0].args.defaultingType: Invalid value: "System": when .defaultConstraints are not empty`,
		args("NodeResourcesBalancedAllocation",
			"{resources: [{name: cpu, weight: 2}]}"): `profiles[0].pluginConfig[0].args.resources[0].weight: Invalid value: 2: must be 1`,
		args("DynamicResources",
			"{filterTimeout: -1s, bindingTimeout: 0s}"): `[profiles[0].pluginConfig[0].args.filterTimeout: Invalid value: "-1s": must be zero or positive, profiles[0].pluginConfig[0].args.bindingTimeout: Invalid value: "0s": must be at least 1 second]`,
		args("VolumeBinding", "{shape: [{utilization: 0, score: 11}]}"): `profiles[0].pluginConfig[0].args.shape[0].score: Invalid value: 11: not in valid range [0, 10]`,
		args("VolumeBinding", "{bindTimeoutSeconds: -1}"):               `profiles[0].pluginConfig[0].args.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value`,
		// Upstream finds these when it builds the profile, and names the path beneath the arguments only.
		args("NodeResourcesFit",
			`{ignoredResourceGroups: ["a/b"]}`): `ignoredResourceGroups[0]: Invalid value: "a/b": resource group name can't contain '/'`,
		args("NodeResourcesFit",
			`{scoringStrategy: {type: Foo}}`): `scoringStrategy.type: Unsupported value: "Foo": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"`,
		args("NodeResourcesFit",
			`{scoringStrategy: {resources: [{name: cpu, weight: 101}]}}`): `scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in valid range (0, 100]`,
		args("NodeResourcesFit",
			`{scoringStrategy: {type: RequestedToCapacityRatio}}`): `scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio`,
		args("NodeResourcesFit",
			`{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [{utilization: 50, score: 11},{utilization: 20, score: 1}]}}}`): `scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]`,
		"profiles: [{schedulerName: a}, {schedulerName: a}]":                                                  `profiles[1].schedulerName: Duplicate value: "a"`,
		`profiles: [{schedulerName: a}, {schedulerName: b, plugins: {queueSort: {disabled: [{name: "*"}]}}}]`: `must be the same for all profiles`,
	} {
		c, err := decode([]byte(header + file))
		if err == nil {
			err = Validate(c).ToAggregate()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v\nwant\n%s", file, err, want)
		}
	}
}

// TestDefaults: what a file need not say.
func TestDefaults(t *testing.T) {
	t.Parallel()
	c, err := decode([]byte(header +
		args("NodeResourcesFit", "{scoringStrategy: {type: MostAllocated, resources: [{name: a.b/c}]}}")))
	if err != nil {
		t.Fatal(err)
	}
	if errs := Validate(c); len(errs) > 0 {
		t.Fatal(errs)
	}
	fit, ok := c.Profiles[0].PluginConfig[0].Args.Object.(*configv1.NodeResourcesFitArgs)
	if !ok || fit.ScoringStrategy.Resources[0].Weight != 1 {
		t.Errorf("arguments %+v", c.Profiles[0].PluginConfig[0].Args.Object)
	}
	if errs := Validate(Default()); len(errs) > 0 || *Default().Profiles[0].SchedulerName != DefaultSchedulerName {
		t.Errorf("without a file: %v", errs)
	}
	if _, err := decode([]byte("apiVersion: v1\nkind: Pod\n")); err == nil ||
		!strings.Contains(err.Error(), `no kind "Pod" is registered for version "v1"`) {
		t.Errorf("a pod is read as a configuration: %v", err)
	}
}

// FuzzDecode: whatever a file says, it is read or refused.
func FuzzDecode(f *testing.F) {
	f.Add(header + "extenders: [{prioritizeVerb: p}]")
	f.Add(header + args("VolumeBinding", "{bindTimeoutSeconds: -1}"))
	f.Fuzz(func(_ *testing.T, file string) {
		if c, err := decode([]byte(file)); err == nil {
			Validate(c)
		}
	})
}
