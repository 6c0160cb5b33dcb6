package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/pkg/featuregates"
	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/cpuquota"
)

// The feature gates on which settings of the kubelet depend.
const (
	gateQOSReserved = "QOSReserved"
	gatePeriod      = "CustomCPUCFSQuotaPeriod"
)

// gateOn reports whether a gate is on. The settings' check names gates that are wrong.
func gateOn(c *kubeletconfig.KubeletConfiguration, name featuregate.Feature) bool {
	gates, err := featuregates.With(c.FeatureGates)
	return err == nil && gates.Enabled(name)
}

// usualPeriod is the period in which limits of CPU are kept by default.
const usualPeriod = 100 * time.Millisecond

// quotaOptions are the flags of what the cgroups of pods are held to.
type quotaOptions struct {
	cpu      bool
	period   time.Duration
	reserved map[string]string
}

func (o *quotaOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.cpu, "cpu-cfs-quota", true,
		"Enforce CPU limits; false: containers may use all CPU of the node, and requests decide when it is short.")
	fs.DurationVar(&o.period, "cpu-cfs-quota-period", usualPeriod,
		"The period in which CPU limits are enforced, from 1ms to 1s.")
	fs.Var(flag.NewMapStringString(&o.reserved), "qos-reserved",
		"A part of the memory requests of pods that pods of lower QoS classes may not use (e.g. memory=50%). Requires the feature gate QOSReserved.")
}

func (o *quotaOptions) merge(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	if fs.Changed("cpu-cfs-quota") {
		c.CPUCFSQuota = &o.cpu
	}
	if fs.Changed("cpu-cfs-quota-period") {
		c.CPUCFSQuotaPeriod = &metav1.Duration{Duration: o.period}
	}
	if fs.Changed("qos-reserved") {
		c.QOSReserved = o.reserved
	}
}

// cpuQuota returns how limits of CPU are kept. The fields are set, because defaultConfig has run.
func cpuQuota(c *kubeletconfig.KubeletConfiguration) cpuquota.Quota {
	return cpuquota.Quota{Off: !*c.CPUCFSQuota, Period: c.CPUCFSQuotaPeriod.Duration}
}

// checkQuota refuses periods that the kernel does not take, or that the gate forbids. The messages are upstream's.
func checkQuota(c *kubeletconfig.KubeletConfiguration) error {
	const field = "invalid configuration: cpuCFSQuotaPeriod (--cpu-cfs-quota-period) %v "
	switch p := *c.CPUCFSQuotaPeriod; {
	case !gateOn(c, gatePeriod):
		if p.Duration != usualPeriod {
			return fmt.Errorf(field+"requires feature gate "+gatePeriod, p)
		}
	case p.Duration < time.Millisecond || p.Duration > time.Second:
		return fmt.Errorf(field+"must be between 1ms and 1sec, inclusive", p)
	}
	return nil
}

// reservedPercent returns the part of memory requests that qosReserved keeps from pods of lower classes; 0: none. The
// messages are upstream's.
func reservedPercent(c *kubeletconfig.KubeletConfiguration) (percent int64, err error) {
	for _, name := range slices.Sorted(maps.Keys(c.QOSReserved)) {
		if name != string(corev1.ResourceMemory) {
			return 0, fmt.Errorf("--qos-reserved value failed to parse: cannot reserve %q resource", name)
		}
		if percent, err = parsePercent(c.QOSReserved[name]); err != nil {
			return 0, fmt.Errorf("--qos-reserved value failed to parse: failed to parse percentage %q for %q resource: %w",
				c.QOSReserved[name], name, err)
		}
	}
	return percent, nil
}

// parsePercent reads a whole number of percent, "50%".
func parsePercent(text string) (int64, error) {
	number, ok := strings.CutSuffix(text, "%")
	if !ok {
		return 0, fmt.Errorf("percentage expected, got '%s'", text)
	}
	n, err := strconv.ParseInt(number, 10, 64)
	switch {
	case err != nil:
		return 0, fmt.Errorf("invalid number in percentage '%s'", text)
	case n < 0 || n > 100:
		return 0, errors.New("percentage must be between 0 and 100")
	}
	return n, nil
}

// reserve returns the memory that is kept from pods of lower classes, on a node that has capacity and keeps some of it
// for the system.
func reserve(c *kubeletconfig.KubeletConfiguration, capacity, keep corev1.ResourceList) cgroup.Reserve {
	percent, err := reservedPercent(c)
	if err != nil || !gateOn(c, gateQOSReserved) {
		return cgroup.Reserve{} // was checked with the settings
	}
	memory := capacity.Memory().DeepCopy()
	memory.Sub(*keep.Memory())
	return cgroup.Reserve{Percent: percent, Allocatable: memory.Value()}
}
