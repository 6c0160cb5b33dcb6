package cgroup

import (
	"context"
	"errors"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"bonsai/pkg/kubelet/runtime"
)

// Reserve keeps memory that pods have requested free for them: pods of lower classes cannot use it (qosReserved).
type Reserve struct {
	// Percent is the part of the requests of guaranteed pods that no others may use, and of the requests of burstable
	// pods that best effort pods may not use either. 0: pods of all classes share the node's memory.
	Percent int64
	// Allocatable is the memory of the node that is not reserved for the system, in bytes.
	Allocatable int64
}

// leastMemory is the least limit of a class: one page.
const leastMemory = 4096

// limits returns the limits of memory of the burstable and of the best effort pods together. It is pure.
func (r Reserve) limits(pods []*corev1.Pod) (burstable, bestEffort int64) {
	requested := map[corev1.PodQOSClass]int64{}
	for _, p := range pods {
		if counts(p) {
			requests := resource.PodRequests(p, resource.PodResourcesOptions{})
			requested[runtime.QOSClass(p)] += requests.Memory().Value()
		}
	}
	burstable = r.Allocatable - requested[corev1.PodQOSGuaranteed]*r.Percent/100
	bestEffort = burstable - requested[corev1.PodQOSBurstable]*r.Percent/100
	return max(burstable, leastMemory), max(bestEffort, leastMemory)
}

// limitClass gives the cgroup of a class its values. A limit of memory that is below the pods' use of it would kill
// some of them; then the class gets what it uses, so that it does not grow further.
func (m *Manager) limitClass(ctx context.Context, class string, v values) error {
	path := m.names.path("kubepods", class)
	used, err := m.usage(path)
	if known := err == nil; known && v.memory > 0 && used.WorkingSetBytes > uint64(v.memory) {
		m.cfg.Log.Warn("pods use memory that qosReserved keeps for better classes", "class", class, "uses",
			used.WorkingSetBytes, "limit", v.memory)
		v.memory = int64(used.MemoryBytes)
	}
	err = m.change(ctx, path, v)
	if errors.Is(err, syscall.EBUSY) { // v1: the kernel cannot make the class use less
		v.memory = int64(used.MemoryBytes)
		err = m.change(ctx, path, v)
	}
	return err
}
