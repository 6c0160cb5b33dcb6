package scheduler

import (
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/trace"
)

// SlimPod drops from a fresh pod what no decision reads, in place: most of its size.
func SlimPod(pod *corev1.Pod) {
	pod.ManagedFields = nil
	parent := trace.Of(pod)
	pod.Annotations = nil
	if parent != "" {
		pod.Annotations = map[string]string{trace.Annotation: parent}
	}
	spec := &pod.Spec
	slimContainers(spec.InitContainers)
	slimContainers(spec.Containers)
	spec.EphemeralContainers, spec.Volumes, spec.HostAliases, spec.ImagePullSecrets, spec.ReadinessGates = nil, nil, nil, nil, nil
	spec.SecurityContext, spec.DNSConfig = nil, nil
	spec.EnableServiceLinks, spec.AutomountServiceAccountToken, spec.TerminationGracePeriodSeconds = nil, nil, nil
	resizing := false
	var conditions []corev1.PodCondition
	for _, c := range pod.Status.Conditions {
		resizing = resizing || c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress
		if c.Type == corev1.PodScheduled || c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress || c.Type == corev1.DisruptionTarget {
			conditions = append(conditions, c)
		}
	}
	status := corev1.PodStatus{
		Phase: pod.Status.Phase, NominatedNodeName: pod.Status.NominatedNodeName, StartTime: pod.Status.StartTime, Conditions: conditions,
	}
	if resizing {
		// What a resizing pod occupies is told by its status.
		status.ContainerStatuses, status.InitContainerStatuses = pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses
	}
	pod.Status = status
}

func slimContainers(list []corev1.Container) {
	for i := range list {
		c := &list[i]
		slim := corev1.Container{Name: c.Name, Image: c.Image, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				slim.Ports = append(slim.Ports, p)
			}
		}
		*c = slim
	}
}

// SlimNode drops from a fresh node what no decision reads, in place.
func SlimNode(n *corev1.Node) {
	n.ManagedFields, n.Annotations = nil, nil
	n.Status = corev1.NodeStatus{Allocatable: n.Status.Allocatable, Images: n.Status.Images}
}
