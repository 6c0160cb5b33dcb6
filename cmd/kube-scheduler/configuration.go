package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"bonsai/pkg/scheduler/plugins/volumebinding"
)

// apiVersion of the configuration file; its kind is KubeSchedulerConfiguration.
const (
	apiVersion = "kubescheduler.config.k8s.io/v1"
	kind       = "KubeSchedulerConfiguration"
)

// configuration is what is used of a KubeSchedulerConfiguration. Fields that tune what this scheduler does not do, such as
// percentageOfNodesToScore (all nodes are scored) or parallelism, are accepted.
type configuration struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	ClientConnection struct {
		Kubeconfig string  `json:"kubeconfig"`
		QPS        float32 `json:"qps"`
		Burst      int     `json:"burst"`
	} `json:"clientConnection"`
	LeaderElection struct {
		LeaderElect       *bool            `json:"leaderElect"`
		ResourceName      string           `json:"resourceName"`
		ResourceNamespace string           `json:"resourceNamespace"`
		LeaseDuration     *metav1.Duration `json:"leaseDuration"`
		RenewDeadline     *metav1.Duration `json:"renewDeadline"`
		RetryPeriod       *metav1.Duration `json:"retryPeriod"`
	} `json:"leaderElection"`
	PodInitialBackoffSeconds *int64    `json:"podInitialBackoffSeconds"`
	PodMaxBackoffSeconds     *int64    `json:"podMaxBackoffSeconds"`
	Profiles                 []profile `json:"profiles"`
}

// profile names a set of plug-ins.
type profile struct {
	SchedulerName string               `json:"schedulerName"`
	Plugins       map[string]pluginSet `json:"plugins"`
	PluginConfig  []pluginConfig       `json:"pluginConfig"`
}

// pluginSet enables and disables plug-ins, at one extension point or, as multiPoint, at all; "*" disables all.
type pluginSet struct {
	Enabled  []pluginName `json:"enabled"`
	Disabled []pluginName `json:"disabled"`
}

type pluginName struct {
	Name   string `json:"name"`
	Weight int64  `json:"weight"`
}

// pluginConfig holds the arguments of a plug-in, of which those of the plug-ins below are read.
type pluginConfig struct {
	Name string     `json:"name"`
	Args pluginArgs `json:"args"`
}

type pluginArgs struct {
	// NodeResourcesFit
	ScoringStrategy struct {
		Type string `json:"type"`
	} `json:"scoringStrategy"`
	// InterPodAffinity; nil is 1.
	HardPodAffinityWeight *int32 `json:"hardPodAffinityWeight"`
	// VolumeBinding; nil is 600.
	BindTimeoutSeconds *int64 `json:"bindTimeoutSeconds"`
	// PodTopologySpread: System (default) or List.
	DefaultingType string `json:"defaultingType"`
}

const defaultSchedulerName = "default-scheduler"

func defaultConfiguration() *configuration {
	return &configuration{APIVersion: apiVersion, Kind: kind, Profiles: []profile{{SchedulerName: defaultSchedulerName}}}
}

// readConfiguration reads the file, in YAML or JSON.
func readConfiguration(path string) (*configuration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &configuration{}
	if err := yaml.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("reading %q: %w", path, err)
	}
	if c.APIVersion != apiVersion || c.Kind != kind {
		return nil, fmt.Errorf("reading %q: no kind %q is registered for version %q", path, c.Kind, c.APIVersion)
	}
	if len(c.Profiles) == 0 {
		c.Profiles = []profile{{}}
	}
	for i := range c.Profiles {
		if c.Profiles[i].SchedulerName == "" && len(c.Profiles) == 1 {
			c.Profiles[i].SchedulerName = defaultSchedulerName
		}
	}
	return c, nil
}

// apply writes the file's settings into the options whose flags were not given.
func (c *configuration) apply(o *options, fs *pflag.FlagSet) {
	unset := func(flag string) bool { return !fs.Changed(flag) }
	text := func(flag string, to *string, value string) {
		if unset(flag) && value != "" {
			*to = value
		}
	}
	duration := func(flag string, to *time.Duration, value *metav1.Duration) {
		if unset(flag) && value != nil {
			*to = value.Duration
		}
	}
	if unset("kube-api-qps") {
		o.limits.QPS = c.ClientConnection.QPS
	}
	if unset("kube-api-burst") && c.ClientConnection.Burst != 0 {
		o.limits.Burst = c.ClientConnection.Burst
	}
	e := &c.LeaderElection
	text("kubeconfig", &o.kubeconfig, c.ClientConnection.Kubeconfig)
	text("leader-elect-resource-name", &o.elect.Name, e.ResourceName)
	text("leader-elect-resource-namespace", &o.elect.Namespace, e.ResourceNamespace)
	duration("leader-elect-lease-duration", &o.elect.Lease, e.LeaseDuration)
	duration("leader-elect-renew-deadline", &o.elect.Renew, e.RenewDeadline)
	duration("leader-elect-retry-period", &o.elect.Retry, e.RetryPeriod)
	if unset("leader-elect") && e.LeaderElect != nil {
		o.elect.Enabled = *e.LeaderElect
	}
}

// validate returns what is wrong with the file's contents.
func (c *configuration) validate() []error {
	var errs []error
	names := map[string]bool{}
	for i, p := range c.Profiles {
		if p.SchedulerName == "" {
			errs = append(errs, fmt.Errorf("profiles[%d].schedulerName: Required value", i))
		}
		if names[p.SchedulerName] {
			errs = append(errs, fmt.Errorf("profiles[%d].schedulerName: Duplicate value: %q", i, p.SchedulerName))
		}
		names[p.SchedulerName] = true
	}
	for i, p := range c.Profiles {
		for j, pc := range p.PluginConfig {
			if s := pc.Args.BindTimeoutSeconds; pc.Name == volumebinding.Name && s != nil && *s < 0 {
				errs = append(errs, fmt.Errorf("profiles[%d].pluginConfig[%d].args.bindTimeoutSeconds: Invalid value: %d: invalid BindTimeoutSeconds, should not be a negative value", i, j, *s))
			}
		}
	}
	if b := c.PodInitialBackoffSeconds; b != nil && *b <= 0 {
		errs = append(errs, fmt.Errorf("podInitialBackoffSeconds: Invalid value: %d: must be greater than 0", *b))
	}
	if b, m := c.initialBackoff(), c.maxBackoff(); m < b {
		errs = append(errs, fmt.Errorf("podMaxBackoffSeconds: Invalid value: %d: must be greater than or equal to podInitialBackoffSeconds", int(m.Seconds())))
	}
	return errs
}

func (c *configuration) initialBackoff() time.Duration {
	if b := c.PodInitialBackoffSeconds; b != nil {
		return time.Duration(*b) * time.Second
	}
	return time.Second
}

func (c *configuration) maxBackoff() time.Duration {
	if b := c.PodMaxBackoffSeconds; b != nil {
		return time.Duration(*b) * time.Second
	}
	return 10 * time.Second
}
