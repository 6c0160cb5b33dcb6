package main

import (
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// apply writes the settings of a configuration file into the options whose flags were not given.
//
// Values that are zero count as not given. QPS needs no such rule: 0 and less is any number.
func apply(c *configv1.KubeSchedulerConfiguration, o *options, fs *pflag.FlagSet) {
	unset := func(flag string) bool { return !fs.Changed(flag) }
	text := func(flag string, to *string, value string) {
		if unset(flag) && value != "" {
			*to = value
		}
	}
	duration := func(flag string, to *time.Duration, value metav1.Duration) {
		if unset(flag) && value.Duration != 0 {
			*to = value.Duration
		}
	}
	if unset("kube-api-qps") {
		o.limits.QPS = c.ClientConnection.QPS
	}
	if unset("kube-api-burst") && c.ClientConnection.Burst != 0 {
		o.limits.Burst = int(c.ClientConnection.Burst)
	}
	e := &c.LeaderElection
	text("kubeconfig", &o.kubeconfig, c.ClientConnection.Kubeconfig)
	text("leader-elect-resource-lock", &o.elect.Lock, e.ResourceLock)
	text("leader-elect-resource-name", &o.elect.Name, e.ResourceName)
	text("leader-elect-resource-namespace", &o.elect.Namespace, e.ResourceNamespace)
	duration("leader-elect-lease-duration", &o.elect.Lease, e.LeaseDuration)
	duration("leader-elect-renew-deadline", &o.elect.Renew, e.RenewDeadline)
	duration("leader-elect-retry-period", &o.elect.Retry, e.RetryPeriod)
	if unset("leader-elect") && e.LeaderElect != nil {
		o.elect.Enabled = *e.LeaderElect
	}
	if unset("profiling") && c.EnableProfiling != nil {
		o.profiling.Enabled = *c.EnableProfiling
	}
	if unset("contention-profiling") && c.EnableContentionProfiling != nil {
		o.profiling.Contention = *c.EnableContentionProfiling
	}
}

func seconds(n *int64) time.Duration { return time.Duration(*n) * time.Second }
