package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"bonsai/api/kubeversion"
	"bonsai/cmd/internal/daemon"
	"bonsai/cmd/internal/election"
	"bonsai/cmd/internal/guard"
	"bonsai/cmd/internal/profiling"
	"bonsai/pkg/featuregates"
	"bonsai/pkg/scheduler/config"
)

// options are the flags, under upstream's names and with upstream's defaults. Flags that are given overrule the
// configuration file.
type options struct {
	logging   daemon.Logging
	metrics   daemon.MetricFlags
	tracing   daemon.Tracing
	guard     guard.Flags
	listener  daemon.Listener
	serving   daemon.Serving
	profiling profiling.Flags
	gates     featuregates.Flag
	limits    daemon.Limits
	elect     election.Flags

	configFile, policyFile string
	kubeconfig, master     string
	maxUnschedulable       time.Duration
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	o.logging.AddFlags(fs)
	o.metrics.AddFlags(fs)
	o.tracing.AddFlags(fs)
	o.gates.AddFlag(fs)
	o.guard.AddFlags(fs)
	o.serving.AddFlags(fs)
	o.profiling.AddFlags(fs)
	o.limits.AddFlags(fs, 100)
	o.elect.AddFlags(fs, component)
	fs.StringVar(&o.configFile, "config", "", "The path to the KubeSchedulerConfiguration file.")
	fs.StringVar(&o.policyFile, "policy-config-file", "",
		"The path to a file with a scheduling policy (kind Policy, version v1), whose predicates and priorities are the plug-ins of today; not together with --config.")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Path to kubeconfig file with authorization and master location information.")
	fs.StringVar(&o.master, "master", "",
		"The address of the Kubernetes API server (overrides any value in kubeconfig).")
	o.listener.AddFlags(fs, component, 10259)
	fs.DurationVar(&o.maxUnschedulable, "pod-max-in-unschedulable-pods-duration", 5*time.Minute,
		"How long a pod that fits nowhere stays aside before it is tried again without any event that could help it.")
	accepted().AddFlags(fs)
	refused().AddFlags(fs)
}

// accepted are flags that have no effect: they choose what is always done one way.
func accepted() daemon.AcceptedFlags {
	return daemon.AcceptedFlags{
		{Why: "requests are protobuf", Strings: []string{"kube-api-content-type"}},
		{Why: "every listening socket has SO_REUSEADDR, as Go sets it", Bools: []string{"permit-address-sharing"}},
		{Why: "a failed lookup is repeated; no client certificate is trusted before one succeeds",
			Bools: []string{"authentication-tolerate-lookup-failure"}},
		{Why: "no other version is emulated", Bools: []string{"emulation-forward-compatible"}},
		daemon.AcceptedVersions(),
	}
}

// refused are flags that choose what is served, and that are not built.
func refused() daemon.Refused {
	return daemon.Refused{
		{Name: "emulated-version", Would: "have the features of another version",
			Usual: []string{kubeversion.API, "kube=" + kubeversion.API}},
		{Name: "write-config-to", Would: "write the configuration to the file and end"},
	}
}

// complete reads the configuration file, lets the flags that were given overrule it, and returns every problem at once.
//
// The order of precedence is: flag, file, default. A policy file has no such settings, so nothing of it is applied.
func (o *options) complete(fs *pflag.FlagSet) (*configv1.KubeSchedulerConfiguration, error) {
	cfg := config.Default()
	var err error
	switch {
	case o.configFile != "" && o.policyFile != "":
		return nil, errors.New("--config and --policy-config-file may not be given together")
	case o.policyFile != "":
		if cfg, err = config.ReadPolicy(o.policyFile); err != nil {
			return nil, fmt.Errorf("--policy-config-file: %w", err)
		}
	case o.configFile != "":
		if cfg, err = config.Read(o.configFile); err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		apply(cfg, o, fs)
	}
	checks := []error{
		o.listener.Validate(),
		daemon.Require(o.maxUnschedulable > 0, "--pod-max-in-unschedulable-pods-duration %s must be greater than 0",
			o.maxUnschedulable),
		refused().Check(fs), accepted().Check(fs), o.serving.Validate(), o.metrics.Validate(),
		o.limits.Validate(), o.elect.Validate(), o.tracing.Read(),
		daemon.Require(o.kubeconfig != "",
			"--kubeconfig, or clientConnection.kubeconfig in the file of --config, is required"),
	}
	if err := config.Validate(cfg).ToAggregate(); err != nil {
		checks = append(checks, err)
	}
	return cfg, errors.Join(checks...)
}
