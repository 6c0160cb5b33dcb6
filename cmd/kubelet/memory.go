package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"bonsai/pkg/kubelet/cm/memory"
	"bonsai/pkg/kubelet/eviction/pressure"
)

// memoryOptions are the flags of the memory manager.
type memoryOptions struct {
	policy   string
	reserved []string
}

func (o *memoryOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.policy, "memory-manager-policy", memory.None,
		"Memory Manager policy to use. Possible values: 'None', 'Static'.")
	fs.StringArrayVar(&o.reserved, "reserved-memory", nil,
		"A comma separated list of memory reservations for NUMA nodes. (e.g. --reserved-memory 0:memory=1Gi,hugepages-1M=2Gi --reserved-memory 1:memory=2Gi). The total sum for each memory type should be equal to the sum of kube-reserved, system-reserved and eviction-threshold. See https://kubernetes.io/docs/tasks/administer-cluster/memory-manager/#reserved-memory-flag for more details.")
}

// merge lets given flags win over the file, and fills in the defaults.
func (o *memoryOptions) merge(fs *pflag.FlagSet, c *kubeletconfig.KubeletConfiguration) error {
	if fs.Changed("memory-manager-policy") || c.MemoryManagerPolicy == "" {
		c.MemoryManagerPolicy = o.policy
	}
	if !fs.Changed("reserved-memory") {
		return nil
	}
	c.ReservedMemory = nil
	for _, text := range o.reserved {
		// Upstream accepts several NUMA nodes in one flag, with semicolons between them.
		for _, one := range strings.Split(text, ";") {
			r, err := parseReservation(one)
			if err != nil {
				return fmt.Errorf("--reserved-memory: %w", err)
			}
			c.ReservedMemory = append(c.ReservedMemory, r)
		}
	}
	return nil
}

// parseReservation reads the reservation of one NUMA node, "0:memory=1Gi,hugepages-2Mi=1Gi".
func parseReservation(text string) (kubeletconfig.MemoryReservation, error) {
	node, limits, ok := strings.Cut(strings.TrimSpace(text), ":")
	id, err := strconv.ParseInt(node, 10, 32)
	if !ok || err != nil {
		return kubeletconfig.MemoryReservation{}, fmt.Errorf("%q is not of the form NODE:memory=AMOUNT,…", text)
	}
	r := kubeletconfig.MemoryReservation{NumaNode: int32(id), Limits: corev1.ResourceList{}}
	for _, l := range strings.Split(limits, ",") {
		name, amount, _ := strings.Cut(l, "=")
		q, err := resource.ParseQuantity(amount)
		if err != nil {
			return r, fmt.Errorf("%q: %w", l, err)
		}
		if _, twice := r.Limits[corev1.ResourceName(name)]; twice {
			return r, fmt.Errorf("%q: %s is given twice", text, name)
		}
		r.Limits[corev1.ResourceName(name)] = q
	}
	return r, nil
}

// memorySettings returns the memory manager's settings, or the first fault in them. The machine is not known yet;
// checkReserved compares them with it.
func memorySettings(c *kubeletconfig.KubeletConfiguration) (memory.Settings, error) {
	s := memory.Settings{Policy: c.MemoryManagerPolicy, Reserved: memory.Reserved{}}
	if s.Policy != memory.None && s.Policy != memory.Static {
		return s, fmt.Errorf("memoryManagerPolicy (--memory-manager-policy): unknown policy: %q", s.Policy)
	}
	if s.Policy == memory.None && len(c.ReservedMemory) > 0 {
		return s, errors.New("reservedMemory (--reserved-memory): the policy None reserves no memory of NUMA nodes")
	}
	for _, r := range c.ReservedMemory {
		id := int(r.NumaNode)
		if s.Reserved[id] == nil {
			s.Reserved[id] = map[corev1.ResourceName]uint64{}
		}
		for name, q := range r.Limits {
			switch _, twice := s.Reserved[id][name]; {
			case twice:
				return s, fmt.Errorf("reservedMemory: duplicated reservation of %s for NUMA node %d", name, id)
			case name != corev1.ResourceMemory && !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
				return s, fmt.Errorf("reservedMemory: the limit type %q for NUMA node %d is not allowed, only memory and hugepages- are", name, id)
			case q.Sign() <= 0:
				return s, fmt.Errorf("reservedMemory: the %s of NUMA node %d must be greater than zero", name, id)
			}
			s.Reserved[id][name] = uint64(q.Value())
		}
	}
	return s, nil
}

// checkReserved checks that the memory reserved on NUMA nodes is as much as is reserved on the whole machine: otherwise
// pods could be admitted for which no node has room, or memory would lie idle.
func checkReserved(c *kubeletconfig.KubeletConfiguration, s memory.Settings, capacity corev1.ResourceList) error {
	if s.Policy != memory.Static {
		return nil
	}
	keep, err := kept(c)
	if err != nil {
		return err
	}
	policy, err := evictionPolicy(c)
	if err != nil {
		return err
	}
	whole := keep.Memory().DeepCopy()
	threshold := pressure.Reserved(policy.Thresholds, capacity)
	whole.Add(*threshold.Memory())
	sum := uint64(0)
	for _, kinds := range s.Reserved {
		sum += kinds[corev1.ResourceMemory]
	}
	if whole.Value() == 0 {
		return errors.New("memoryManagerPolicy: you should specify the reserved memory for the Static policy")
	}
	if sum != uint64(whole.Value()) {
		return fmt.Errorf("reservedMemory: the total amount %q of type %q is not equal to the value %q determined by Node Allocatable feature",
			resource.NewQuantity(int64(sum), resource.BinarySI), corev1.ResourceMemory,
			resource.NewQuantity(whole.Value(), resource.BinarySI))
	}
	return nil
}
