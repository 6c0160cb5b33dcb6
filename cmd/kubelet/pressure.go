package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/cli/flag"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/pkg/kubelet/cgroup"
	"bonsai/pkg/kubelet/eviction/pressure"
)

// pressureOptions are the flags of eviction and of the resources that are kept from pods.
type pressureOptions struct {
	hard, soft, softGrace, minReclaim  map[string]string
	transition                         time.Duration
	maxPodGrace                        int32
	kubeReserved, systemReserved       map[string]string
	kubeReservedCgroup, systemReserveC string
	enforce                            []string
}

func (o *pressureOptions) addFlags(fs *pflag.FlagSet) {
	fs.Var(flag.NewLangleSeparatedMapStringString(&o.hard), "eviction-hard",
		"A set of eviction thresholds (e.g. memory.available<1Gi) that if met would trigger a pod eviction.")
	fs.Var(flag.NewLangleSeparatedMapStringString(&o.soft), "eviction-soft",
		"A set of eviction thresholds (e.g. memory.available<1.5Gi) that if met over a corresponding grace period would trigger a pod eviction.")
	fs.Var(flag.NewMapStringString(&o.softGrace), "eviction-soft-grace-period",
		"A set of eviction grace periods (e.g. memory.available=1m30s) that correspond to how long a soft eviction threshold must hold before triggering a pod eviction.")
	fs.Var(flag.NewMapStringString(&o.minReclaim), "eviction-minimum-reclaim",
		"A set of minimum reclaims (e.g. imagefs.available=2Gi) that describes the minimum amount of resource the kubelet will reclaim when performing a pod eviction if that resource is under pressure.")
	fs.DurationVar(&o.transition, "eviction-pressure-transition-period", 5*time.Minute,
		"Duration for which the kubelet has to wait before transitioning out of an eviction pressure condition.")
	fs.Int32Var(&o.maxPodGrace, "eviction-max-pod-grace-period", 0,
		"Maximum allowed grace period (in seconds) to use when terminating pods in response to a soft eviction threshold being met. If negative, defer to pod specified value.")
	fs.Var(flag.NewMapStringString(&o.kubeReserved), "kube-reserved",
		"A set of ResourceName=ResourceQuantity (e.g. cpu=200m,memory=500Mi,ephemeral-storage=1Gi,pid=1000) pairs that describe resources reserved for kubernetes system components.")
	fs.Var(flag.NewMapStringString(&o.systemReserved), "system-reserved",
		"A set of ResourceName=ResourceQuantity (e.g. cpu=200m,memory=500Mi,ephemeral-storage=1Gi,pid=1000) pairs that describe resources reserved for non-kubernetes components.")
	fs.StringVar(&o.kubeReservedCgroup, "kube-reserved-cgroup", "",
		"Absolute name of the top level cgroup that is used to manage kubernetes components for which compute resources were reserved via '--kube-reserved' flag.")
	fs.StringVar(&o.systemReserveC, "system-reserved-cgroup", "",
		"Absolute name of the top level cgroup that is used to manage non-kubernetes components for which compute resources were reserved via '--system-reserved' flag.")
	fs.StringSliceVar(&o.enforce, "enforce-node-allocatable", []string{enforcePods},
		"A comma separated list of levels of node allocatable enforcement to be enforced by kubelet. Acceptable options are 'none', 'pods', 'system-reserved', 'system-reserved-compressible', 'kube-reserved' and 'kube-reserved-compressible'.")
}

// merge lets given flags win over the file, and fills in upstream's defaults.
func (o *pressureOptions) merge(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	for name, f := range map[string]struct {
		to   *map[string]string
		from map[string]string
	}{
		"eviction-hard": {&c.EvictionHard, o.hard}, "eviction-soft": {&c.EvictionSoft, o.soft},
		"eviction-soft-grace-period": {&c.EvictionSoftGracePeriod, o.softGrace},
		"eviction-minimum-reclaim":   {&c.EvictionMinimumReclaim, o.minReclaim},
		"kube-reserved":              {&c.KubeReserved, o.kubeReserved},
		"system-reserved":            {&c.SystemReserved, o.systemReserved},
	} {
		if fs.Changed(name) {
			*f.to = f.from
		}
	}
	if fs.Changed("eviction-pressure-transition-period") || c.EvictionPressureTransitionPeriod.Duration == 0 {
		c.EvictionPressureTransitionPeriod.Duration = o.transition
	}
	if fs.Changed("eviction-max-pod-grace-period") {
		c.EvictionMaxPodGracePeriod = o.maxPodGrace
	}
	if fs.Changed("kube-reserved-cgroup") {
		c.KubeReservedCgroup = o.kubeReservedCgroup
	}
	if fs.Changed("system-reserved-cgroup") {
		c.SystemReservedCgroup = o.systemReserveC
	}
	if fs.Changed("enforce-node-allocatable") || c.EnforceNodeAllocatable == nil {
		c.EnforceNodeAllocatable = o.enforce
	}
	// Thresholds in the file replace all defaults, unless mergeDefaultEvictionSettings is set: a file with one
	// threshold would otherwise turn off the others unnoticed, which is upstream's default behaviour.
	defaults := pressure.DefaultHard()
	switch merged := c.MergeDefaultEvictionSettings; {
	case c.EvictionHard == nil:
		c.EvictionHard = defaults
	case merged != nil && *merged:
		maps.Copy(defaults, c.EvictionHard)
		c.EvictionHard = defaults
	}
}

// evictionPolicy parses the thresholds. The signal about the memory of all pods exists only if pods are limited as a
// whole.
func evictionPolicy(c *kubeletconfig.KubeletConfiguration) (pressure.Policy, error) {
	thresholds, err := pressure.Parse(
		pressure.Settings{Hard: c.EvictionHard, Soft: c.EvictionSoft, SoftGrace: c.EvictionSoftGracePeriod,
			MinReclaim:  c.EvictionMinimumReclaim,
			PodsLimited: slices.Contains(c.EnforceNodeAllocatable, enforcePods)})
	return pressure.Policy{Thresholds: thresholds, Transition: c.EvictionPressureTransitionPeriod.Duration,
		MaxPodGrace: time.Duration(c.EvictionMaxPodGracePeriod) * time.Second}, err
}

// The values of enforceNodeAllocatable: what its limits are enforced on, fully or only as a share of CPU
// ("compressible").
const (
	enforceNone             = "none"
	enforcePods             = "pods"
	enforceSystem           = "system-reserved"
	enforceSystemCompressed = "system-reserved-compressible"
	enforceKube             = "kube-reserved"
	enforceKubeCompressed   = "kube-reserved-compressible"
)

// checkEnforced refuses unknown and contradicting levels, and levels for reserved resources without the name of their
// cgroup.
func checkEnforced(c *kubeletconfig.KubeletConfiguration) error {
	var errs []error
	seen := map[string]bool{}
	for _, e := range c.EnforceNodeAllocatable {
		if seen[e] {
			errs = append(errs, fmt.Errorf(
				"duplicated enforcements %q in enforceNodeAllocatable (--enforce-node-allocatable)", e))
		}
		seen[e] = true
		switch {
		case !slices.Contains([]string{enforceNone, enforcePods, enforceSystem, enforceSystemCompressed, enforceKube,
			enforceKubeCompressed}, e):
			errs = append(errs, fmt.Errorf(
				"option %q specified for enforceNodeAllocatable (--enforce-node-allocatable). Valid options are \"pods\", \"system-reserved\", \"system-reserved-compressible\", \"kube-reserved\", \"kube-reserved-compressible\" or \"none\"", e))
		case e == enforceNone && len(c.EnforceNodeAllocatable) > 1:
			errs = append(errs, errors.New(
				"enforceNodeAllocatable (--enforce-node-allocatable) may not contain additional enforcements when \"none\" is specified"))
		}
	}
	for _, r := range []struct{ whole, compressed, field, flag, cgroup string }{
		{enforceSystem, enforceSystemCompressed, "systemReservedCgroup", "--system-reserved-cgroup",
			c.SystemReservedCgroup},
		{enforceKube, enforceKubeCompressed, "kubeReservedCgroup", "--kube-reserved-cgroup", c.KubeReservedCgroup},
	} {
		if (seen[r.whole] || seen[r.compressed]) && r.cgroup == "" {
			errs = append(errs, fmt.Errorf(
				"%s (%s) must be specified when %q or %q included in enforceNodeAllocatable (--enforce-node-allocatable)", r.field, r.flag, r.whole, r.compressed))
		}
		if seen[r.whole] && seen[r.compressed] {
			errs = append(errs, fmt.Errorf(
				"both %q and %q cannot be specified together in enforceNodeAllocatable (--enforce-node-allocatable)",
				r.whole, r.compressed))
		}
	}
	return errors.Join(errs...)
}

// podLimit returns the limit of all pods together: what is not reserved, if that is enforced, else everything. Pods may
// use what eviction keeps free; the one that does is evicted.
func podLimit(c *kubeletconfig.KubeletConfiguration, capacity, keep corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{corev1.ResourceCPU: capacity[corev1.ResourceCPU],
		corev1.ResourceMemory: capacity[corev1.ResourceMemory]}
	if slices.Contains(c.EnforceNodeAllocatable, enforcePods) {
		for name, q := range out {
			q.Sub(keep[name])
			out[name] = q
		}
	}
	return out
}

// reservedCgroups returns the cgroups on which the reservations are enforced as limits.
func reservedCgroups(c *kubeletconfig.KubeletConfiguration) ([]cgroup.Reserved, error) {
	var out []cgroup.Reserved
	for _, r := range []struct {
		whole, compressed, cgroup, flag string
		amounts                         map[string]string
	}{
		{enforceKube, enforceKubeCompressed, c.KubeReservedCgroup, "--kube-reserved", c.KubeReserved},
		{enforceSystem, enforceSystemCompressed, c.SystemReservedCgroup, "--system-reserved", c.SystemReserved},
	} {
		limit, err := reserved(r.flag, r.amounts)
		if err != nil {
			return nil, err
		}
		switch {
		case slices.Contains(c.EnforceNodeAllocatable, r.whole):
			out = append(out, cgroup.Reserved{Name: r.cgroup, Limit: limit})
		case slices.Contains(c.EnforceNodeAllocatable, r.compressed):
			out = append(out, cgroup.Reserved{Name: r.cgroup,
				Limit: corev1.ResourceList{corev1.ResourceCPU: limit[corev1.ResourceCPU]}})
		}
	}
	return out, nil
}

// kept returns the sum of what is reserved for everything that is not a pod: kubeReserved and systemReserved, or the
// CPUs reserved by name.
func kept(c *kubeletconfig.KubeletConfiguration) (corev1.ResourceList, error) {
	out, err := reserved("--kube-reserved", c.KubeReserved)
	if err != nil {
		return nil, err
	}
	system, err := reserved("--system-reserved", c.SystemReserved)
	for name, q := range system {
		sum := out[name]
		sum.Add(q)
		out[name] = sum
	}
	return out, errors.Join(err, reserveCPUs(c, out))
}

// enough refuses reservations beyond the machine's capacity: the allocatable amount would be negative.
func enough(capacity, keep corev1.ResourceList) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(capacity)) {
		has, asks := capacity[name], keep[name]
		if asks.Cmp(has) > 0 {
			errs = append(errs, fmt.Errorf(
				"resource %q has a reservation of %s but capacity of %s, expected capacity >= reservation", name,
				asks.String(), has.String()))
		}
	}
	return errors.Join(errs...)
}
