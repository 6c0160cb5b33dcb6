package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"bonsai/cmd/internal/daemon"
	"bonsai/cmd/internal/guard"
)

// options are the flags, under upstream's names and with upstream's defaults. Flags that are given overrule the
// configuration file.
type options struct {
	logging daemon.Logging
	guard   guard.Flags

	configFile, kubeconfig         string
	bindAddress, certFile, keyFile string
	securePort                     int
	profiling                      bool
	maxUnschedulable               time.Duration
	elect                          electOptions
}

// electOptions are the settings of leader election.
type electOptions struct {
	enabled             bool
	namespace, name     string
	lease, renew, retry time.Duration
}

func (o *options) addFlags(fs *pflag.FlagSet) {
	o.logging.AddFlags(fs)
	o.guard.AddFlags(fs)
	fs.StringVar(&o.configFile, "config", "", "The path to the KubeSchedulerConfiguration file.")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "Path to kubeconfig file with authorization and master location information.")
	fs.StringVar(&o.bindAddress, "bind-address", "0.0.0.0", "The IP address on which to listen for the --secure-port port.")
	fs.IntVar(&o.securePort, "secure-port", 10259, "The port on which to serve health and metrics over HTTPS; 0 serves nothing.")
	fs.StringVar(&o.certFile, "tls-cert-file", "", "File with the serving certificate; without one a self-signed one is made.")
	fs.StringVar(&o.keyFile, "tls-private-key-file", "", "File with the key of --tls-cert-file.")
	fs.BoolVar(&o.profiling, "profiling", true, "Serve profiles at /debug/pprof/, to those who are authorized for it.")
	fs.DurationVar(&o.maxUnschedulable, "pod-max-in-unschedulable-pods-duration", 5*time.Minute, "How long a pod that fits nowhere stays aside before it is tried again without any event that could help it.")
	e := &o.elect
	fs.BoolVar(&e.enabled, "leader-elect", true, "Become leader by a Lease before scheduling.")
	fs.StringVar(&e.namespace, "leader-elect-resource-namespace", "kube-system", "Namespace of the Lease.")
	fs.StringVar(&e.name, "leader-elect-resource-name", component, "Name of the Lease.")
	fs.DurationVar(&e.lease, "leader-elect-lease-duration", 15*time.Second, "How long others wait after the leader's last renewal before they take over.")
	fs.DurationVar(&e.renew, "leader-elect-renew-deadline", 10*time.Second, "How long the leader tries to renew before it gives up.")
	fs.DurationVar(&e.retry, "leader-elect-retry-period", 2*time.Second, "Time between tries to acquire or renew.")
	addAcceptedFlags(fs)
}

// addAcceptedFlags adds upstream's flags that users' start scripts pass but that change nothing here.
func addAcceptedFlags(fs *pflag.FlagSet) {
	const note = "Accepted for compatibility; without effect."
	for _, name := range []string{
		"requestheader-client-ca-file", "requestheader-extra-headers-prefix", "requestheader-group-headers", "requestheader-username-headers", "requestheader-allowed-names",
		"feature-gates", "cert-dir", "tls-min-version", "tls-cipher-suites", "kube-api-qps", "kube-api-burst", "kube-api-content-type",
		"leader-elect-resource-lock", "master",
		"vmodule", "show-hidden-metrics-for-version", "emulated-version", "http2-max-streams-per-connection", "write-config-to",
	} {
		fs.String(name, "", note)
	}
	for name, value := range map[string]bool{
		"contention-profiling": true, "authentication-tolerate-lookup-failure": true,
		"permit-port-sharing": false, "permit-address-sharing": false, "emulation-forward-compatible": false,
	} {
		fs.Bool(name, value, note)
	}
}

// complete reads the configuration file, lets the flags that were given overrule it, and returns every problem at once.
func (o *options) complete(fs *pflag.FlagSet) (*configuration, error) {
	cfg := defaultConfiguration()
	if o.configFile != "" {
		var err error
		if cfg, err = readConfiguration(o.configFile); err != nil {
			return nil, fmt.Errorf("--config: %w", err)
		}
		cfg.apply(o, fs)
	}
	var errs []error
	if o.securePort < 0 || o.securePort > 65535 {
		errs = append(errs, fmt.Errorf("--secure-port %d must be between 0 and 65535, inclusive", o.securePort))
	}
	if o.maxUnschedulable <= 0 {
		errs = append(errs, fmt.Errorf("--pod-max-in-unschedulable-pods-duration %s must be greater than 0", o.maxUnschedulable))
	}
	if e := o.elect; e.enabled && (e.lease <= e.renew || e.renew <= e.retry || e.retry <= 0) {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration (%s) must be greater than --leader-elect-renew-deadline (%s), and that greater than --leader-elect-retry-period (%s)", e.lease, e.renew, e.retry))
	}
	if o.kubeconfig == "" {
		errs = append(errs, errors.New("--kubeconfig, or clientConnection.kubeconfig in the file of --config, is required"))
	}
	errs = append(errs, cfg.validate()...)
	return cfg, errors.Join(errs...)
}
