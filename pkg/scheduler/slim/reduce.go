package slim

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	whole, allocated := resizedWhole(pod)
	if k.reduced["status.resources"] {
		st.Resources = whole
	}
	if k.reduced["status.allocatedResources"] {
		st.AllocatedResources = allocated
	}
	if k.reduced["status.containerStatuses"] {
		st.ContainerStatuses = resized(spec.Containers, st.ContainerStatuses)
	}
	if k.reduced["status.initContainerStatuses"] {
		st.InitContainerStatuses = resized(spec.InitContainers, st.InitContainerStatuses)
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

// resizedWhole returns what the pod as a whole has, if its spec asks for something else.
func resizedWhole(pod *corev1.Pod) (has *corev1.ResourceRequirements, allocated corev1.ResourceList) {
	asks, st := pod.Spec.Resources, &pod.Status
	if asks == nil || st.Resources == nil ||
		sameAmounts(st.Resources.Requests, asks.Requests) && sameAmounts(st.AllocatedResources, asks.Requests) {
		return nil, nil
	}
	return &corev1.ResourceRequirements{Requests: st.Resources.Requests}, st.AllocatedResources
}

// resized returns what containers have whose specs ask for something else: until a resize is done they occupy that,
// too. The kubelet reports a resize in a condition only after it has seen it, so conditions do not show all of them.
func resized(list []corev1.Container, statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range statuses {
		st := &statuses[i]
		k := slices.IndexFunc(list, func(c corev1.Container) bool { return c.Name == st.Name })
		if k < 0 || st.Resources == nil {
			continue
		}
		asks := list[k].Resources.Requests
		if !sameAmounts(st.Resources.Requests, asks) ||
			len(st.AllocatedResources) > 0 && !sameAmounts(st.AllocatedResources, asks) {
			out = append(out, corev1.ContainerStatus{
				Name:               st.Name,
				AllocatedResources: st.AllocatedResources,
				Resources:          &corev1.ResourceRequirements{Requests: st.Resources.Requests},
			})
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

// slimVolumes keeps claims, and the disks that two pods may not share.
func slimVolumes(list []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for i := range list {
		switch v := &list[i]; {
		case v.Ephemeral != nil:
			source := corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
			out = append(out, corev1.Volume{Name: v.Name, VolumeSource: source})
		case v.PersistentVolumeClaim != nil || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil ||
			v.ISCSI != nil || v.RBD != nil:
			out = append(out, *v)
		}
	}
	return out
}
