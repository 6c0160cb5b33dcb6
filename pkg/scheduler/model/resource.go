package model

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// What a container without requests is counted as when nodes are scored, so that such pods do not all go to one node.
const (
	defaultMilliCPU = 100
	defaultMemory   = 200 * 1024 * 1024
)

// Resource is an amount of node resources: CPU in thousandths of a core, the rest in bytes or pieces.
type Resource struct {
	MilliCPU, Memory, EphemeralStorage int64
	// Pods is how many pods may run; only in what a node can allocate.
	Pods   int64
	Scalar map[corev1.ResourceName]int64
}

// newResource converts a list.
func newResource(list corev1.ResourceList) Resource {
	var r Resource
	for name, q := range list {
		switch name {
		case corev1.ResourceCPU:
			r.MilliCPU = q.MilliValue()
		case corev1.ResourceMemory:
			r.Memory = q.Value()
		case corev1.ResourceEphemeralStorage:
			r.EphemeralStorage = q.Value()
		case corev1.ResourcePods:
			r.Pods = q.Value()
		default:
			if r.Scalar == nil {
				r.Scalar = map[corev1.ResourceName]int64{}
			}
			r.Scalar[name] = q.Value()
		}
	}
	return r
}

// Of returns the amount of one resource.
func (r *Resource) Of(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceCPU:
		return r.MilliCPU
	case corev1.ResourceMemory:
		return r.Memory
	case corev1.ResourceEphemeralStorage:
		return r.EphemeralStorage
	case corev1.ResourcePods:
		return r.Pods
	}
	return r.Scalar[name]
}

// Add adds sign times o; pods are not counted here.
func (r *Resource) Add(o *Resource, sign int64) {
	r.MilliCPU += sign * o.MilliCPU
	r.Memory += sign * o.Memory
	r.EphemeralStorage += sign * o.EphemeralStorage
	for name, v := range o.Scalar {
		if r.Scalar == nil {
			r.Scalar = map[corev1.ResourceName]int64{}
		}
		r.Scalar[name] += sign * v
	}
}

// Clone copies r.
func (r *Resource) Clone() Resource {
	c := *r
	if r.Scalar != nil {
		c.Scalar = make(map[corev1.ResourceName]int64, len(r.Scalar))
		for k, v := range r.Scalar {
			c.Scalar[k] = v
		}
	}
	return c
}

// Equal compares two amounts.
func (r *Resource) Equal(o *Resource) bool {
	if r.MilliCPU != o.MilliCPU || r.Memory != o.Memory || r.EphemeralStorage != o.EphemeralStorage ||
		r.Pods != o.Pods || len(r.Scalar) != len(o.Scalar) {
		return false
	}
	for k, v := range r.Scalar {
		if w, ok := o.Scalar[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// requests returns what the pod asks for, and the same with defaults for containers that ask for no CPU or memory.
func requests(pod *corev1.Pod) (exact, nonZero Resource) {
	// A resize takes the largest of what the pod asks for, was allocated and has.
	opts := resourcehelper.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}
	exact = newResource(resourcehelper.PodRequests(pod, opts))
	opts.NonMissingContainerRequests = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(defaultMilliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(defaultMemory, resource.DecimalSI),
	}
	withDefaults := resourcehelper.PodRequests(pod, opts)
	nonZero = Resource{MilliCPU: withDefaults.Cpu().MilliValue(), Memory: withDefaults.Memory().Value()}
	return exact, nonZero
}
