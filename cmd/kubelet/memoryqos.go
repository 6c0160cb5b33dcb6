package main

import (
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/util/version"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/memoryqos"
)

// gateMemoryQoS allows memoryThrottlingFactor and memoryReservationPolicy.
const gateMemoryQoS = "MemoryQoS"

// calmKernel is the first version of Linux in which a container that needs memory faster than it is reclaimed comes to
// its limit, instead of being throttled for ever.
var calmKernel = version.MustParseGeneric("5.9")

// memoryQoS returns how the memory of pods is protected and throttled, on a node whose pods may use so many bytes of it
// together.
func memoryQoS(c *kubeletconfig.KubeletConfiguration, allocatable int64) memoryqos.QoS {
	q := memoryqos.QoS{Off: !gateOn(c, gateMemoryQoS), Allocatable: allocatable,
		Protect: c.MemoryReservationPolicy == kubeletconfig.TieredReservationMemoryReservationPolicy}
	if c.MemoryThrottlingFactor != nil {
		q.Factor = *c.MemoryThrottlingFactor
	}
	return q
}

// checkMemoryQoS returns what is wrong with the fields of memory, in upstream's words.
func checkMemoryQoS(c *kubeletconfig.KubeletConfiguration) (errs []error) {
	on, factor, policy := gateOn(c, gateMemoryQoS), c.MemoryThrottlingFactor, c.MemoryReservationPolicy
	if factor != nil && !on {
		errs = append(errs, fmt.Errorf("invalid configuration: memoryThrottlingFactor must not be set when %s feature "+
			"gate is disabled", gateMemoryQoS))
	}
	if factor != nil && (*factor <= 0 || *factor > 1) {
		errs = append(errs, fmt.Errorf("invalid configuration: memoryThrottlingFactor %v must be greater than 0 and "+
			"less than or equal to 1.0", *factor))
	}
	const none, tiered = kubeletconfig.NoneMemoryReservationPolicy,
		kubeletconfig.TieredReservationMemoryReservationPolicy
	switch {
	case policy != "" && policy != none && policy != tiered:
		errs = append(errs, fmt.Errorf("invalid configuration: option %q specified for memoryReservationPolicy. Valid "+
			"options are %q or %q", policy, none, tiered))
	case policy == tiered && !on:
		errs = append(errs, fmt.Errorf("invalid configuration: memoryReservationPolicy %q requires %s feature gate to "+
			"be enabled", policy, gateMemoryQoS))
	}
	return errs
}

// warnMemoryQoS says where this machine cannot do what the fields of memory ask for.
func warnMemoryQoS(q memoryqos.QoS, kernel string, log *slog.Logger) {
	if q.Off || !q.Protect && q.Factor == 0 {
		return
	}
	if v, err := cgroup.Version(); err == nil && v == 1 {
		log.Warn("memoryThrottlingFactor and memoryReservationPolicy have no effect: this machine has cgroup v1")
		return
	}
	if v, err := version.ParseGeneric(kernel); err == nil && q.Factor > 0 && v.LessThan(calmKernel) {
		log.Warn("with memoryThrottlingFactor, containers may be throttled for ever on a kernel before 5.9", "kernel",
			kernel)
	}
}
