package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/cpuset"

	"bonsai/pkg/kubelet/cm"
	"bonsai/pkg/kubelet/cm/cpu"
)

// managerOptions are the flags of the CPU manager and of the topology manager.
type managerOptions struct {
	cpuPolicy, reservedCPUs       string
	cpuOptions                    map[string]string
	cpuPeriod                     time.Duration
	topologyPolicy, topologyScope string
	topologyOptions               map[string]string
}

func (o *managerOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.cpuPolicy, "cpu-manager-policy", cpu.None,
		"CPU Manager policy to use. Possible values: 'none', 'static'.")
	fs.StringToStringVar(&o.cpuOptions, "cpu-manager-policy-options", nil,
		"A set of key=value CPU Manager policy options to use, to fine tune their behaviour. If not supplied, keep the default behaviour.")
	fs.DurationVar(&o.cpuPeriod, "cpu-manager-reconcile-period", 10*time.Second,
		"CPU Manager reconciliation period. Examples: '10s', or '1m'. If not supplied, defaults to 'NodeStatusUpdateFrequency'.")
	fs.StringVar(&o.reservedCPUs, "reserved-cpus", "",
		"A comma-separated list of CPUs or CPU ranges that are reserved for system and kubernetes usage. This specific list will supersede cpu counts in --system-reserved and --kube-reserved.")
	fs.StringVar(&o.topologyPolicy, "topology-manager-policy", kubeletconfig.NoneTopologyManagerPolicy,
		"Topology Manager policy to use. Possible values: 'none', 'best-effort', 'restricted', 'single-numa-node'.")
	fs.StringVar(&o.topologyScope, "topology-manager-scope", kubeletconfig.ContainerTopologyManagerScope,
		"Scope to which topology hints applied. Topology Manager collects hints from Hint Providers and applies them to defined scope to ensure the pod admission. Possible values: 'container', 'pod'.")
	fs.StringToStringVar(&o.topologyOptions, "topology-manager-policy-options", nil,
		"A set of key=value Topology Manager policy options to use, to fine tune their behaviour. If not supplied, keep the default behaviour.")
}

// merge lets given flags win over the file, and fills in the defaults.
func (o *managerOptions) merge(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) {
	for flag, f := range map[string]struct {
		to   *string
		from string
	}{
		"cpu-manager-policy":      {&c.CPUManagerPolicy, o.cpuPolicy},
		"reserved-cpus":           {&c.ReservedSystemCPUs, o.reservedCPUs},
		"topology-manager-policy": {&c.TopologyManagerPolicy, o.topologyPolicy},
		"topology-manager-scope":  {&c.TopologyManagerScope, o.topologyScope},
	} {
		if fs.Changed(flag) || *f.to == "" {
			*f.to = f.from
		}
	}
	if fs.Changed("cpu-manager-policy-options") {
		c.CPUManagerPolicyOptions = o.cpuOptions
	}
	if fs.Changed("topology-manager-policy-options") {
		c.TopologyManagerPolicyOptions = o.topologyOptions
	}
	switch {
	case fs.Changed("cpu-manager-reconcile-period"):
		c.CPUManagerReconcilePeriod.Duration = o.cpuPeriod
	// The default is the period of the node's status, as the flag's help says, and not the 10 s in the flag.
	case c.CPUManagerReconcilePeriod.Duration == 0:
		c.CPUManagerReconcilePeriod.Duration = c.NodeStatusUpdateFrequency.Duration
	}
}

// cpuSettings returns the CPU manager's settings, or the first fault in them. The static policy needs CPUs that it does
// not give away: ReservedCount rounds the reserved amount up to whole CPUs.
func cpuSettings(c *kubeletconfig.KubeletConfiguration) (cpu.Settings, error) {
	s := cpu.Settings{Policy: c.CPUManagerPolicy, Period: c.CPUManagerReconcilePeriod.Duration}
	var err error
	if s.Options, err = cpu.ParseOptions(c.CPUManagerPolicyOptions); err != nil {
		return s, fmt.Errorf("cpuManagerPolicyOptions: %w", err)
	}
	if len(c.CPUManagerPolicyOptions) > 0 && s.Policy != cpu.Static {
		return s, fmt.Errorf("cpuManagerPolicyOptions: policy %q takes no options", s.Policy)
	}
	if s.Reserved, err = cpuset.Parse(c.ReservedSystemCPUs); err != nil {
		return s, fmt.Errorf("reservedSystemCPUs (--reserved-cpus): %w", err)
	}
	keep, err := kept(c)
	if err != nil {
		return s, err
	}
	s.ReservedCount = int(math.Ceil(float64(keep.Cpu().MilliValue()) / 1000))
	if s.Period <= 0 {
		return s, errors.New("cpuManagerReconcilePeriod (--cpu-manager-reconcile-period) must be greater than zero")
	}
	if err := s.Check(); err != nil {
		return s, fmt.Errorf("cpuManagerPolicy (--cpu-manager-policy): %w", err)
	}
	return s, nil
}

// topology returns the topology manager's settings. most is the largest number of NUMA nodes for which they work;
// config compares it with the machine.
func topology(c *kubeletconfig.KubeletConfiguration) (t cm.Topology, most int, err error) {
	t, most = cm.Topology{Policy: c.TopologyManagerPolicy,
		PodScope: c.TopologyManagerScope == kubeletconfig.PodTopologyManagerScope}, cm.MaxNUMANodes
	if !slices.Contains([]string{kubeletconfig.NoneTopologyManagerPolicy, kubeletconfig.BestEffortTopologyManagerPolicy,
		kubeletconfig.RestrictedTopologyManagerPolicy,
		kubeletconfig.SingleNumaNodeTopologyManagerPolicy}, t.Policy) {
		return t, most, fmt.Errorf("topologyManagerPolicy (--topology-manager-policy): unknown policy: %q", t.Policy)
	}
	if s := c.TopologyManagerScope; s != kubeletconfig.PodTopologyManagerScope &&
		s != kubeletconfig.ContainerTopologyManagerScope {
		return t, most, fmt.Errorf("topologyManagerScope (--topology-manager-scope): unknown scope: %q", s)
	}
	for name, text := range c.TopologyManagerPolicyOptions {
		switch name {
		case "prefer-closest-numa-nodes":
			t.Closest, err = strconv.ParseBool(text)
		case "max-allowable-numa-nodes":
			// Beyond 16 the sets of nodes are too many to be tried.
			if most, err = strconv.Atoi(text); err == nil && (most < cm.MaxNUMANodes || most > 16) {
				err = fmt.Errorf("the minimum value of %q should not be less than %d, and not more than 16", name,
					cm.MaxNUMANodes)
			}
		default:
			err = fmt.Errorf("unknown Topology Manager Policy option: %q", name)
		}
		if err != nil {
			return t, most, fmt.Errorf("topologyManagerPolicyOptions: %w", err)
		}
	}
	return t, most, nil
}

// checkManagers returns the faults in the settings of all resource managers, so that a user sees them together.
func checkManagers(c *kubeletconfig.KubeletConfiguration) error {
	_, cpuErr := cpuSettings(c)
	_, _, topologyErr := topology(c)
	_, memoryErr := memorySettings(c)
	return errors.Join(cpuErr, topologyErr, memoryErr)
}

// reserveCPUs sets the reserved amount of CPU to the number of CPUs in reservedSystemCPUs, if any are named. They
// replace the amounts of kubeReserved and systemReserved, as upstream documents.
func reserveCPUs(c *kubeletconfig.KubeletConfiguration, keep corev1.ResourceList) error {
	named, err := cpuset.Parse(c.ReservedSystemCPUs)
	if err == nil && !named.IsEmpty() {
		keep[corev1.ResourceCPU] = *resource.NewQuantity(int64(named.Size()), resource.DecimalSI)
	}
	return err
}
