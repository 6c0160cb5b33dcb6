package scheduler

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// SlimPod drops from a fresh pod what no decision reads, in place: most of its size.
func SlimPod(pod *corev1.Pod) {
	pod.ManagedFields = nil
	pod.Annotations = nil
	spec := &pod.Spec
	slimContainers(spec.InitContainers)
	slimContainers(spec.Containers)
	spec.Volumes = slimVolumes(spec.Volumes)
	spec.EphemeralContainers, spec.HostAliases, spec.ImagePullSecrets, spec.ReadinessGates = nil, nil, nil, nil
	spec.SecurityContext, spec.DNSConfig = nil, nil
	spec.EnableServiceLinks, spec.AutomountServiceAccountToken, spec.TerminationGracePeriodSeconds = nil, nil, nil
	var conditions []corev1.PodCondition
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled || c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress || c.Type == corev1.DisruptionTarget {
			conditions = append(conditions, c)
		}
	}
	whole, allocated := resizedWhole(pod)
	pod.Status = corev1.PodStatus{
		Resources: whole, AllocatedResources: allocated, ResourceClaimStatuses: pod.Status.ResourceClaimStatuses,
		Phase: pod.Status.Phase, NominatedNodeName: pod.Status.NominatedNodeName, StartTime: pod.Status.StartTime, Conditions: conditions,
		ContainerStatuses: resized(spec.Containers, pod.Status.ContainerStatuses), InitContainerStatuses: resized(spec.InitContainers, pod.Status.InitContainerStatuses),
	}
}

// resizedWhole keeps what the pod as a whole has, if that is something else than its spec asks for.
func resizedWhole(pod *corev1.Pod) (has *corev1.ResourceRequirements, allocated corev1.ResourceList) {
	asks, st := pod.Spec.Resources, &pod.Status
	if asks == nil || st.Resources == nil || sameAmounts(st.Resources.Requests, asks.Requests) && sameAmounts(st.AllocatedResources, asks.Requests) {
		return nil, nil
	}
	return &corev1.ResourceRequirements{Requests: st.Resources.Requests}, st.AllocatedResources
}

// resized keeps of the statuses those of containers that have something else than their specs ask for, and of these what they
// have: until a resize is done they occupy that, too. The kubelet tells of a resize by a condition only once it has seen it.
func resized(list []corev1.Container, statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range statuses {
		st := &statuses[i]
		k := slices.IndexFunc(list, func(c corev1.Container) bool { return c.Name == st.Name })
		if k < 0 || st.Resources == nil {
			continue
		}
		asks := list[k].Resources.Requests
		if !sameAmounts(st.Resources.Requests, asks) || len(st.AllocatedResources) > 0 && !sameAmounts(st.AllocatedResources, asks) {
			out = append(out, corev1.ContainerStatus{Name: st.Name, AllocatedResources: st.AllocatedResources,
				Resources: &corev1.ResourceRequirements{Requests: st.Resources.Requests}})
		}
	}
	return out
}

func sameAmounts(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

func slimContainers(list []corev1.Container) {
	for i := range list {
		c := &list[i]
		slim := corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules}
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				slim.Ports = append(slim.Ports, p)
			}
		}
		*c = slim
	}
}

// slimVolumes keeps claims, and the disks that two pods may not share.
func slimVolumes(list []corev1.Volume) []corev1.Volume {
	var out []corev1.Volume
	for i := range list {
		switch v := &list[i]; {
		case v.Ephemeral != nil:
			out = append(out, corev1.Volume{Name: v.Name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
		case v.PersistentVolumeClaim != nil || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.ISCSI != nil || v.RBD != nil:
			out = append(out, *v)
		}
	}
	return out
}

// SlimNode drops from a fresh node what no decision reads, in place.
func SlimNode(n *corev1.Node) {
	n.ManagedFields = nil
	avoid, ok := n.Annotations[corev1.PreferAvoidPodsAnnotationKey]
	if n.Annotations = nil; ok {
		n.Annotations = map[string]string{corev1.PreferAvoidPodsAnnotationKey: avoid}
	}
	n.Status = corev1.NodeStatus{Allocatable: n.Status.Allocatable, Images: n.Status.Images, DeclaredFeatures: n.Status.DeclaredFeatures}
}
