package core

import (
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec"
	"bonsai/api/resources"
)

// podResizeStrategy is for pods/resize, which changes what a pod and its containers have of CPU and memory, and nothing
// else.
func podResizeStrategy() resources.Typed[*corev1.Pod] {
	s := podStrategy()
	s.PrepareUpdate = preparePodResize
	s.ValidateUpdate = validatePodResize
	return s
}

// preparePodResize takes of what the client sent the resources, the resize policies and the containers' names; the last
// two are there for validatePodResize to refuse a change of them. Resources of the pod as a whole that are missing
// follow from those of the containers, as on creation.
func preparePodResize(obj, old *corev1.Pod) {
	sent := obj.Spec
	*obj = *withMeta(old, obj)
	if sent.Resources != nil {
		obj.Spec.Resources = sent.Resources
	}
	obj.Spec.Containers = resizedContainers(sent.Containers, old.Spec.Containers)
	obj.Spec.InitContainers = resizedContainers(sent.InitContainers, old.Spec.InitContainers)
	podspec.DefaultPodResources(&obj.Spec)
}

// resizedContainers are the containers sent, each with everything but its name, resources and resize policy as the
// container at its place had it. Those that had no container at their place stay as they are: they are refused.
func resizedContainers(sent, old []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for i := range sent {
		c := sent[i]
		if i < len(old) {
			c = *old[i].DeepCopy()
			c.Name, c.Resources, c.ResizePolicy = sent[i].Name, sent[i].Resources, sent[i].ResizePolicy
		}
		out = append(out, c)
	}
	return out
}

// validatePodResize checks a resize: its quality of service stays, nothing that was requested or limited becomes free
// of that, and only CPU and memory change.
//
// https://kubernetes.io/docs/tasks/configure-pod-container/resize-container-resources/#limitations
func validatePodResize(obj, old *corev1.Pod) field.ErrorList {
	if os := old.Spec.OS; os != nil && os.Name == corev1.Windows {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "windows pods cannot be resized")}
	}
	if _, mirror := old.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return field.ErrorList{field.Forbidden(field.NewPath(""), "static pods cannot be resized")}
	}
	path := field.NewPath("spec")
	errs := validatePod(obj)
	if class := podspec.QOSClass(old); podspec.QOSClass(obj) != class {
		errs = append(errs, field.Invalid(path, class, "Pod QOS Class may not change as a result of resizing"))
	}
	moved := append(notMoved("containers", obj.Spec.Containers, old.Spec.Containers, path),
		notMoved("initContainers", obj.Spec.InitContainers, old.Spec.InitContainers, path)...)
	if len(moved) > 0 {
		return append(errs, moved...) // containers cannot be paired with the previous ones
	}
	errs = append(errs, validateResizeRemovals(obj, old, path)...)
	return append(errs, validateResizeChanges(obj, old, path)...)
}

// notMoved: the same containers are at the same places.
func notMoved(list string, now, was []corev1.Container, path *field.Path) field.ErrorList {
	if len(now) != len(was) {
		return field.ErrorList{field.Forbidden(path.Child(list), list+" may not be added or removed on resize")}
	}
	var errs field.ErrorList
	for i := range now {
		if now[i].Name != was[i].Name {
			errs = append(errs, field.Forbidden(path.Child(list).Index(i).Child("name"),
				list+" may not be renamed or reordered on resize"))
		}
	}
	return errs
}

// validateResizeRemovals: requests and limits may be added, not removed.
func validateResizeRemovals(obj, old *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if was := old.Spec.Resources; was != nil {
		errs = append(errs, notRemoved(obj.Spec.Resources, was, "pod-level resource", path.Child("resources"))...)
	}
	for i := range obj.Spec.InitContainers {
		errs = append(errs, notRemoved(&obj.Spec.InitContainers[i].Resources, &old.Spec.InitContainers[i].Resources,
			"resource", path.Child("initContainers").Index(i).Child("resources"))...)
	}
	for i := range obj.Spec.Containers {
		errs = append(errs, notRemoved(&obj.Spec.Containers[i].Resources, &old.Spec.Containers[i].Resources, "resource",
			path.Child("containers").Index(i).Child("resources"))...)
	}
	return errs
}

// notRemoved: what was requested and limited still is.
func notRemoved(now, was *corev1.ResourceRequirements, what string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if lacks(now.Requests, was.Requests) {
		errs = append(errs, field.Forbidden(path.Child("requests"), what+" requests cannot be removed"))
	}
	if lacks(now.Limits, was.Limits) {
		errs = append(errs, field.Forbidden(path.Child("limits"), what+" limits cannot be removed"))
	}
	return errs
}

func lacks(now, was corev1.ResourceList) bool {
	for name := range was {
		if _, ok := now[name]; !ok {
			return true
		}
	}
	return false
}

// validateResizeChanges: only CPU and memory may change.
func validateResizeChanges(obj, old *corev1.Pod, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if now, was := obj.Spec.Resources, old.Spec.Resources; now != nil && was != nil &&
		!apiequality.Semantic.DeepEqual(fixedResources(*now), fixedResources(*was)) {
		errs = append(errs, field.Forbidden(path, "only cpu and memory resources are mutable at pod-level"))
	}
	for i := range obj.Spec.Containers {
		if !sameButResources(&obj.Spec.Containers[i], &old.Spec.Containers[i]) {
			errs = append(errs, field.Forbidden(path, "only cpu and memory resources are mutable"))
			break
		}
	}
	for i := range obj.Spec.InitContainers {
		if !sameButResources(&obj.Spec.InitContainers[i], &old.Spec.InitContainers[i]) {
			errs = append(errs, field.Forbidden(path.Child("initContainers").Index(i),
				"only cpu and memory resources for init or sidecar containers are mutable"))
		}
	}
	return errs
}

// sameButResources reports whether two states of a container differ in nothing but what it has of CPU and memory.
func sameButResources(now, was *corev1.Container) bool {
	return apiequality.Semantic.DeepEqual(now.ResizePolicy, was.ResizePolicy) &&
		apiequality.Semantic.DeepEqual(fixedResources(now.Resources), fixedResources(was.Resources))
}

// fixedResources are those that a resize cannot change.
func fixedResources(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	fixed := func(list corev1.ResourceList) corev1.ResourceList {
		out := corev1.ResourceList{}
		for name, q := range list {
			if name != corev1.ResourceCPU && name != corev1.ResourceMemory {
				out[name] = q
			}
		}
		return out
	}
	return corev1.ResourceRequirements{Requests: fixed(r.Requests), Limits: fixed(r.Limits), Claims: r.Claims}
}
