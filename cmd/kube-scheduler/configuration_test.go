package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"bonsai/pkg/scheduler/config"
	"bonsai/pkg/scheduler/devices"
	"bonsai/pkg/scheduler/plugins"
	"bonsai/pkg/scheduler/plugins/noderesources"
	"bonsai/pkg/scheduler/preemption"
	"bonsai/pkg/scheduler/profile"
	"bonsai/pkg/scheduler/volumes"
)

// parse completes options from flags and a configuration file ("" for none).
func parse(t *testing.T, file string, args ...string) (*options, *configv1.KubeSchedulerConfiguration, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config="+path)
	}
	o := &options{}
	fs := pflag.NewFlagSet(component, pflag.ContinueOnError)
	o.addFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	cfg, err := o.complete(fs)
	return o, cfg, err
}

const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

func TestFlagsOverruleTheFile(t *testing.T) {
	t.Parallel()
	o, cfg, err := parse(t, header+`
clientConnection: {kubeconfig: /from/file, qps: 100, burst: 200}
leaderElection: {leaderElect: false, leaseDuration: 30s}
parallelism: 8
percentageOfNodesToScore: 50
podMaxBackoffSeconds: 20
`, "--leader-elect-lease-duration=40s")
	if err != nil {
		t.Fatal(err)
	}
	if o.kubeconfig != "/from/file" || o.elect.Enabled || o.elect.Lease != 40*time.Second ||
		seconds(cfg.PodMaxBackoffSeconds) != 20*time.Second || o.limits.QPS != 100 || o.limits.Burst != 200 {
		t.Errorf("options %+v, max back-off %s", o, seconds(cfg.PodMaxBackoffSeconds))
	}
	if len(cfg.Profiles) != 1 || *cfg.Profiles[0].SchedulerName != "default-scheduler" {
		t.Errorf("profiles %+v", cfg.Profiles)
	}
}

func TestWrongSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, file, flag, want string }{
		{"no kubeconfig", "", "--v=1", "--kubeconfig"},
		{"port", "", "--secure-port=70000", "--secure-port 70000 must be between 0 and 65535, inclusive"},
		{"election", "", "--leader-elect-renew-deadline=20s", "must be greater than --leader-elect-renew-deadline"},
		{"kind of lock", "", "--leader-elect-resource-lock=endpoints", "--leader-elect-resource-lock"},
		{"kind of lock in the file", header + "leaderElection: {resourceLock: endpoints}", "--kubeconfig=k",
			`--leader-elect-resource-lock must be "leases", not "endpoints"`},
		{"TLS version", "", "--tls-min-version=VersionTLS9", "--tls-min-version"},
		{"streams", "", "--http2-max-streams-per-connection=-1", "--http2-max-streams-per-connection"},
		{"burst", header + "clientConnection: {qps: 5, burst: -1}", "--v=1", "--kube-api-burst"},
		{"kind", "apiVersion: v1\nkind: Pod\n", "--kubeconfig=k", `no kind "Pod" is registered for version "v1"`},
		{"broken", "{", "--kubeconfig=k", "--config"},
		{"two profiles of a name", header + "profiles: [{schedulerName: a}, {schedulerName: a}]", "--kubeconfig=k",
			`Duplicate value: "a"`},
		{"no name", header + "profiles: [{}, {schedulerName: a}]", "--kubeconfig=k",
			"profiles[0].schedulerName: Required value"},
		{"back-off", header + "podInitialBackoffSeconds: 20", "--kubeconfig=k", "podMaxBackoffSeconds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := parse(t, c.file, c.flag); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one about %q", err, c.want)
			}
		})
	}
}

func TestProfilesPickPlugins(t *testing.T) {
	t.Parallel()
	names := func(list []profile.Enabled) (out []string) {
		for _, e := range list {
			out = append(out, e.Plugin.Name())
		}
		return out
	}
	for _, c := range []struct {
		name, plugins string
		has, not      []string
		err           string
	}{
		{"all by default", "{}", []string{"NodeResourcesFit", "PodTopologySpread", "DefaultBinder"}, nil, ""},
		{"one disabled", "{multiPoint: {disabled: [{name: ImageLocality}]}}", []string{"NodeResourcesFit"},
			[]string{"ImageLocality"}, ""},
		{"only some", `{multiPoint: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeName}]}}`,
			[]string{"PrioritySort", "DefaultBinder", "NodeName"}, []string{"NodeResourcesFit"}, ""},
		{"done elsewhere", "{filter: {enabled: [{name: EBSLimits}]}}",
			[]string{"NodeResourcesFit", "NodeDeclaredFeatures"}, []string{"EBSLimits"}, ""},
		{"devices", "{}", []string{"DynamicResources"}, nil, ""},
		{"volumes", "{}", []string{"VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"}, nil, ""},
		{"unknown", "{filter: {enabled: [{name: Nonsense}]}}", nil, nil, `FilterPlugin "Nonsense" does not exist`},
		{"no scorer", "{score: {enabled: [{name: NodeName}]}}", nil, nil,
			`plugin "NodeName" does not extend ScorePlugin plugin`},
		{"twice", "{filter: {enabled: [{name: NodeName}, {name: NodeName}]}}", nil, nil,
			`plugin "NodeName" already registered as "FilterPlugin"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, cfg, err := parse(t, header+"profiles: [{schedulerName: a, plugins: "+c.plugins+"}]", "--kubeconfig=k")
			if err != nil {
				t.Fatal(err)
			}
			list, err := enabled(&cfg.Profiles[0],
				plugins.Config{Volumes: volumes.New(nil), Devices: devices.New(nil, time.Now)})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range c.has {
				if !slices.Contains(names(list), n) {
					t.Errorf("%s is missing in %v", n, names(list))
				}
			}
			for _, n := range c.not {
				if slices.Contains(names(list), n) {
					t.Errorf("%s is in %v", n, names(list))
				}
			}
		})
	}
}

// TestPolicies: a policy's predicates are the filters and its priorities the scores, called in today's order; a
// configuration beside it is refused.
func TestPolicies(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.json")
	policy := `{"kind": "Policy", "apiVersion": "v1", "predicates": [{"name": "PodFitsHostPorts"}, {"name": "PodFitsResources"}, {"name": "NoDiskConflict"}, {"name": "MatchNodeSelector"}, {"name": "HostName"}],
		"priorities": [{"name": "MostRequestedPriority", "weight": 3}, {"name": "NodePreferAvoidPodsPriority", "weight": 10000}, {"name": "ServiceSpreadingPriority", "weight": 1}, {"name": "EqualPriority", "weight": 1}]}`
	if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := parse(t, header, "--policy-config-file="+path); err == nil ||
		!strings.Contains(err.Error(), "--config and --policy-config-file may not be given together") {
		t.Errorf("both: %v", err)
	}
	o, cfg, err := parse(t, "", "--policy-config-file="+path, "--kubeconfig=k")
	if err != nil {
		t.Fatal(err)
	}
	if o.limits.Burst != 100 || !o.elect.Enabled {
		t.Errorf("a policy changes other settings: %+v", o)
	}
	list, err := enabled(&cfg.Profiles[0],
		plugins.Config{Volumes: volumes.New(nil), Devices: devices.New(nil, time.Now), Preemption: &preemption.Plugin{},
			AvoidPods: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.New("a", list)
	if err != nil {
		t.Fatal(err)
	}
	var filters, scores []string
	for _, f := range p.Filters {
		filters = append(filters, f.Name())
	}
	for _, s := range p.Scores {
		scores = append(scores, fmt.Sprint(s.Name(), " ", s.Weight))
	}
	if got, want := strings.Join(filters, " "),
		"NodeName NodeUnschedulable TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions DynamicResources NodeDeclaredFeatures"; got != want {
		t.Errorf("filters %s, want %s", got, want)
	}
	if got, want := strings.Join(scores, ", "),
		"NodeResourcesFit 3, PodTopologySpread 1, NodePreferAvoidPods 10000"; got != want {
		t.Errorf("scores %s, want %s", got, want)
	}
	if i := slices.IndexFunc(list, func(e profile.Enabled) bool {
		return e.Plugin.Name() == "NodeResourcesFit"
	}); list[i].Plugin.(noderesources.Fit).Strategy != noderesources.MostAllocated {
		t.Errorf("%+v", list[i])
	}
}

// TestBalancedByArguments: the resources of NodeResourcesBalancedAllocation reach the plug-in.
func TestBalancedByArguments(t *testing.T) {
	t.Parallel()
	_, cfg, err := parse(t, header+
		`profiles: [{schedulerName: a, pluginConfig: [{name: NodeResourcesBalancedAllocation, args: {resources: [{name: cpu}, {name: a.b/gpu}]}}]}]`, "--kubeconfig=k")
	if err != nil {
		t.Fatal(err)
	}
	list, err := enabled(&cfg.Profiles[0], plugins.Config{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(e profile.Enabled) bool { return e.Plugin.Name() == noderesources.BalancedName })
	if got := fmt.Sprint(list[i].Plugin.(noderesources.Balanced).Resources); got != "[cpu a.b/gpu]" {
		t.Errorf("resources %s, want [cpu a.b/gpu]", got)
	}
}

// TestPluginsAreCalledWhereTheyAreEnabled: what is said at a point goes before multiPoint, and enabled before disabled.
func TestPluginsAreCalledWhereTheyAreEnabled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ plugins, filters, scores string }{
		{`{multiPoint: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeResourcesFit, weight: 4}]}}`, "NodeResourcesFit", "NodeResourcesFit 4"},
		{`{multiPoint: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeResourcesFit}, {name: TaintToleration}]}, score: {disabled: [{name: "*"}]}}`, "TaintToleration NodeResourcesFit", ""},
		{`{multiPoint: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}, {name: DefaultBinder}]}, score: {enabled: [{name: PodTopologySpread, weight: 7}]}, filter: {enabled: [{name: NodeName}]}}`, "NodeName", "PodTopologySpread 7"},
		{`{score: {disabled: [{name: "*"}], enabled: [{name: ImageLocality}]}, filter: {disabled: [{name: "*"}], enabled: [{name: NodePorts}]}}`, "NodePorts", "ImageLocality 1"},
	} {
		_, cfg, err := parse(t, header+"profiles: [{schedulerName: a, plugins: "+c.plugins+"}]", "--kubeconfig=k")
		if err != nil {
			t.Fatal(err)
		}
		list, err := enabled(&cfg.Profiles[0], plugins.Config{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := profile.New("a", list)
		if err != nil {
			t.Fatal(err)
		}
		var filters, scores []string
		for _, f := range p.Filters {
			filters = append(filters, f.Name())
		}
		for _, s := range p.Scores {
			scores = append(scores, fmt.Sprint(s.Name(), " ", s.Weight))
		}
		if strings.Join(filters, " ") != c.filters || strings.Join(scores, " ") != c.scores {
			t.Errorf("%s: filters %v, scores %v", c.plugins, filters, scores)
		}
	}
}

// TestIdleFieldsAreNamed: the log names each field of the file that has no effect and is set to something else than its
// default, so that nobody relies on it.
func TestIdleFieldsAreNamed(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]string{
		"": nil,
		"parallelism: 16\npercentageOfNodesToScore: 0\ndelayCacheUntilActive: false\nprofiles: [{}]\n" +
			"clientConnection: {acceptContentTypes: \"\", contentType: application/vnd.kubernetes.protobuf}\n" +
			"leaderElection: {resourceLock: leases}": nil,
		"parallelism: 8":               {"parallelism"},
		"percentageOfNodesToScore: 50": {"percentageOfNodesToScore"},
		"profiles: [{schedulerName: a}, {schedulerName: b, percentageOfNodesToScore: 50}]": {
			"profiles.percentageOfNodesToScore"},
		"delayCacheUntilActive: true": {"delayCacheUntilActive"},
		"clientConnection: {acceptContentTypes: a, contentType: b}": {
			"clientConnection.acceptContentTypes", "clientConnection.contentType"},
	} {
		_, cfg, err := parse(t, header+file, "--kubeconfig=k")
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		warnIdle(cfg, slog.New(slog.NewTextHandler(&log, nil)))
		if got := config.Idle(cfg); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", file, got, want)
		}
		for _, name := range want {
			if !strings.Contains(log.String(), "accepted, but have no effect") ||
				!strings.Contains(log.String(), name) {
				t.Errorf("%q: the log is %q, without %s", file, log.String(), name)
			}
		}
		if want == nil && log.Len() > 0 {
			t.Errorf("%q: the log is %q, want none", file, log.String())
		}
	}
}
