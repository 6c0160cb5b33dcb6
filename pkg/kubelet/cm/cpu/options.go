package cpu

import (
	"fmt"
	"strconv"
)

// Options fine-tune the static policy
// (https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/#cpu-policy-static--options).
type Options struct {
	// fullPCPUsOnly gives whole cores, and refuses containers that ask for a part of one.
	fullPCPUsOnly bool
	// distributeAcrossNUMA takes the same number from several nodes if one node has too few.
	distributeAcrossNUMA bool
	// alignByUncoreCache takes CPUs that share a cache, if it can.
	alignByUncoreCache bool
	// strictReservation keeps containers that share CPUs away from the reserved ones.
	strictReservation bool
}

// ParseOptions reads cpuManagerPolicyOptions.
func ParseOptions(of map[string]string) (o Options, err error) {
	for name, text := range of {
		to := map[string]*bool{"full-pcpus-only": &o.fullPCPUsOnly,
			"distribute-cpus-across-numa":      &o.distributeAcrossNUMA,
			"prefer-align-cpus-by-uncorecache": &o.alignByUncoreCache,
			"strict-cpu-reservation":           &o.strictReservation}[name]
		switch {
		case name == "align-by-socket" || name == "distribute-cpus-across-cores":
			return o, fmt.Errorf("CPU Manager Policy Alpha-level Options not enabled, but option %q provided", name)
		case to == nil:
			return o, fmt.Errorf("unknown CPU Manager Policy option: %q", name)
		}
		if *to, err = strconv.ParseBool(text); err != nil {
			return o, fmt.Errorf("bad value for option %q: %w", name, err)
		}
	}
	if o.alignByUncoreCache && o.distributeAcrossNUMA {
		return o, fmt.Errorf("static policy options PreferAlignCpusByUncoreCacheOption and DistributeCPUsAcrossNUMAOption can not be used at the same time")
	}
	return o, nil
}
