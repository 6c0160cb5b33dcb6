package cpu

import (
	"fmt"
	"strconv"
)

// Options fine-tune the static policy
// (https://kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies/#cpu-policy-static--options).
type Options struct {
	// FullPCPUsOnly gives whole cores, and refuses who wants a part of one.
	FullPCPUsOnly bool
	// DistributeAcrossNUMA takes as many from each node where one node has not enough.
	DistributeAcrossNUMA bool
	// AlignByUncoreCache takes CPUs that share a cache, if it can.
	AlignByUncoreCache bool
	// StrictReservation keeps containers that share CPUs away from the reserved ones.
	StrictReservation bool
}

// ParseOptions reads cpuManagerPolicyOptions.
func ParseOptions(of map[string]string) (o Options, err error) {
	for name, text := range of {
		to := map[string]*bool{"full-pcpus-only": &o.FullPCPUsOnly,
			"distribute-cpus-across-numa":      &o.DistributeAcrossNUMA,
			"prefer-align-cpus-by-uncorecache": &o.AlignByUncoreCache,
			"strict-cpu-reservation":           &o.StrictReservation}[name]
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
	if o.AlignByUncoreCache && o.DistributeAcrossNUMA {
		return o, fmt.Errorf("static policy options PreferAlignCpusByUncoreCacheOption and DistributeCPUsAcrossNUMAOption can not be used at the same time")
	}
	return o, nil
}
