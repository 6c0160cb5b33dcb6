package runtime

import (
	"iter"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/podspec"
)

// Kind is what a container is in its pod.
type Kind int

// The kinds of containers.
const (
	Regular Kind = iota
	Init
	Ephemeral
)

// ProbeResult is the result of a container's probe.
type ProbeResult int

// The results of probes. ProbeUnknown is what one says before its first run.
const (
	ProbeUnknown ProbeResult = iota
	ProbeSuccess
	ProbeFailure
)

// Containers are the containers of a pod's spec, of all kinds.
func Containers(pod *corev1.Pod) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
		for i := range pod.Spec.EphemeralContainers {
			if !yield((*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)) {
				return
			}
		}
	}
}

// ContainerSpec is the container of that name among a pod's init and regular ones, nil if there is none.
func ContainerSpec(pod *corev1.Pod, name string) *corev1.Container {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// IsMirror reports whether a pod is the API server's image of a static pod.
func IsMirror(pod *corev1.Pod) bool {
	_, ok := pod.Annotations[AnnotationConfigMirror]
	return ok
}

// FullName returns "namespace/name". Two static pods with one full name share a mirror pod.
func FullName(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// IsStatic reports whether a pod comes from a source of the node.
func IsStatic(pod *corev1.Pod) bool {
	s, ok := pod.Annotations[AnnotationConfigSource]
	return ok && s != sourceAPI && !IsMirror(pod)
}

// QOSClass is a pod's quality of service: what its status says, else what its resources make of it.
func QOSClass(pod *corev1.Pod) corev1.PodQOSClass {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass
	}
	return podspec.QOSClass(pod)
}
