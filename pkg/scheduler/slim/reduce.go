package slim

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// reducible returns the lists of a pod in core that decisions read only in part: some entries, or parts of entries. A
// plug-in that declares such a list, or something in it, gets it whole.
func reducible() []string {
	return []string{
		"spec.containers.ports", "spec.initContainers.ports", "spec.volumes", "status.conditions",
		"status.containerStatuses", "status.initContainerStatuses", "status.resources", "status.allocatedResources",
	}
}

// whole stops the reduction of all lists that a plug-in that reads path needs whole: the list at path, those that
// contain it and those that it contains. New calls it, before the Keeper is shared.
func (k *Keeper) whole(path string) {
	for list := range k.reduced {
		if path == list || strings.HasPrefix(path, list+".") || strings.HasPrefix(list, path+".") {
			delete(k.reduced, list)
		}
	}
}

// reduce drops entries, and parts of entries, that no decision reads from the lists in k.reduced.
func (k *Keeper) reduce(pod *corev1.Pod) {
	spec, st := &pod.Spec, &pod.Status
	if k.reduced["spec.containers.ports"] {
		hostPorts(spec.Containers)
	}
	if k.reduced["spec.initContainers.ports"] {
		hostPorts(spec.InitContainers)
	}
	if k.reduced["spec.volumes"] {
		spec.Volumes = slimVolumes(spec.Volumes)
	}
	if k.reduced["status.conditions"] {
		st.Conditions = slimConditions(st.Conditions)
	}
	keep := !settled(pod)
	if k.reduced["status.resources"] {
		st.Resources = requested(st.Resources, keep)
	}
	if k.reduced["status.allocatedResources"] && !keep {
		st.AllocatedResources = nil
	}
	if k.reduced["status.containerStatuses"] {
		st.ContainerStatuses = resized(st.ContainerStatuses, keep)
	}
	if k.reduced["status.initContainerStatuses"] {
		st.InitContainerStatuses = resized(st.InitContainerStatuses, keep)
	}
}

// slimConditions keeps the conditions about scheduling, preemption and resizes.
func slimConditions(list []corev1.PodCondition) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, c := range list {
		switch c.Type {
		case corev1.PodScheduled, corev1.PodResizePending, corev1.PodResizeInProgress, corev1.DisruptionTarget:
			out = append(out, c)
		}
	}
	return out
}

// settled reports whether a pod has what its spec asks for, as far as its status tells. What a status tells beyond that
// counts until a resize is done. The kubelet reports a resize in a condition only after it has seen it, so conditions
// do not show all of them.
//
// A resize that cannot be does away with what the spec asks for: the pod then needs what its status tells.
func settled(pod *corev1.Pod) bool {
	st := &pod.Status
	if resourcehelper.IsPodResizeInfeasible(pod) || !has(pod.Spec.Containers, st.ContainerStatuses) ||
		!has(pod.Spec.InitContainers, st.InitContainerStatuses) {
		return false
	}
	if st.Resources == nil && st.AllocatedResources == nil {
		return true
	}
	asks := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{ExcludeOverhead: true})
	return (st.Resources == nil || sameAmounts(st.Resources.Requests, asks)) &&
		(st.AllocatedResources == nil || sameAmounts(st.AllocatedResources, asks))
}

// has reports whether containers have what their specs ask for.
func has(list []corev1.Container, statuses []corev1.ContainerStatus) bool {
	return !slices.ContainsFunc(statuses, func(st corev1.ContainerStatus) bool {
		k := slices.IndexFunc(list, func(c corev1.Container) bool { return c.Name == st.Name })
		if k < 0 {
			return false
		}
		asks := list[k].Resources.Requests
		return st.Resources != nil && !sameAmounts(st.Resources.Requests, asks) ||
			st.AllocatedResources != nil && !sameAmounts(st.AllocatedResources, asks)
	})
}

// requested is what of a status' resources counts.
func requested(r *corev1.ResourceRequirements, keep bool) *corev1.ResourceRequirements {
	if r == nil || !keep {
		return nil
	}
	return &corev1.ResourceRequirements{Requests: r.Requests}
}

// resized returns what containers have.
func resized(statuses []corev1.ContainerStatus, keep bool) []corev1.ContainerStatus {
	if !keep {
		return nil
	}
	var out []corev1.ContainerStatus
	for i := range statuses {
		if st := &statuses[i]; st.Resources != nil || st.AllocatedResources != nil {
			out = append(out, corev1.ContainerStatus{Name: st.Name, AllocatedResources: st.AllocatedResources,
				Resources: requested(st.Resources, true)})
		}
	}
	return out
}

func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// hostPorts keeps the ports that a container takes on its node.
func hostPorts(list []corev1.Container) {
	for i := range list {
		c := &list[i]
		var ports []corev1.ContainerPort
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				ports = append(ports, p)
			}
		}
		c.Ports = ports
	}
}

// slimVolumes keeps claims, the disks that two pods may not share, and images.
func slimVolumes(list []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for i := range list {
		switch v := &list[i]; {
		case v.Ephemeral != nil:
			source := corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
			out = append(out, corev1.Volume{Name: v.Name, VolumeSource: source})
		case v.PersistentVolumeClaim != nil || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil ||
			v.ISCSI != nil || v.RBD != nil || v.Image != nil:
			out = append(out, *v)
		}
	}
	return out
}
