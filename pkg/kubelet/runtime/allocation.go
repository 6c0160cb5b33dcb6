package runtime

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// Resources are the requests and limits of a pod as a whole and of its containers, except ephemeral ones. They are
// read-only.
type Resources struct {
	// Pod is nil for a pod that says nothing as a whole.
	Pod *corev1.ResourceRequirements `json:"pod,omitempty"`
	// Containers are by name, init containers among them.
	Containers map[string]corev1.ResourceRequirements `json:"containers"`
}

// ResourcesOf are those that the pod's spec asks for.
func ResourcesOf(pod *corev1.Pod) Resources {
	r := Resources{Pod: pod.Spec.Resources, Containers: map[string]corev1.ResourceRequirements{}}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			r.Containers[list[i].Name] = list[i].Resources
		}
	}
	return r
}

// Equal reports whether both are the same amounts.
func (r Resources) Equal(o Resources) bool {
	return apiequality.Semantic.DeepEqual(r.Pod, o.Pod) && maps.EqualFunc(r.Containers, o.Containers, SameResources)
}

// SameResources reports whether two containers request, and may have, the same.
func SameResources(a, b corev1.ResourceRequirements) bool {
	return apiequality.Semantic.DeepEqual(a, b)
}

// Of is the pod with these resources in place of those that its spec asks for.
func (r Resources) Of(pod *corev1.Pod) *corev1.Pod {
	if r.Equal(ResourcesOf(pod)) {
		return pod
	}
	p := *pod
	p.Spec.Resources = r.Pod
	with := func(list []corev1.Container) []corev1.Container {
		out := append([]corev1.Container(nil), list...)
		for i := range out {
			if has, ok := r.Containers[out[i].Name]; ok {
				out[i].Resources = has
			}
		}
		return out
	}
	p.Spec.InitContainers, p.Spec.Containers = with(pod.Spec.InitContainers), with(pod.Spec.Containers)
	return &p
}

// Effective is what a container's cgroup gets: its own requests and limits, and of CPU and memory the pod's limits
// where it has none.
func (r Resources) Effective(container string) corev1.ResourceRequirements {
	return effective(r.Containers[container], r.Pod)
}

// Effective is Resources.Effective of a container, whatever its kind, and its pod.
func Effective(pod *corev1.Pod, c *corev1.Container) corev1.ResourceRequirements {
	return effective(c.Resources, pod.Spec.Resources)
}

func effective(r corev1.ResourceRequirements, pod *corev1.ResourceRequirements) corev1.ResourceRequirements {
	if pod == nil {
		return r
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		limit, limited := pod.Limits[name]
		if _, own := r.Limits[name]; limited && !own {
			all := corev1.ResourceList{name: limit}
			maps.Copy(all, r.Limits)
			r.Limits = all
		}
	}
	return r
}

// Allocation is what the node gives a pod, and how much of that the pod's cgroups have by now.
type Allocation struct {
	// Generation is that of the pod whose spec asked for the resources.
	Generation int64 `json:"generation"`
	Resources
	// Actuated are, by container, the effective resources that a container was last given, where these are others: its
	// resize is not done.
	Actuated map[string]corev1.ResourceRequirements `json:"actuated,omitempty"`
	// PodActuates: the pod's own cgroup is to get its values after those of the containers; PodActuated is what it was
	// last given, nil for a pod that said nothing as a whole.
	PodActuates bool                         `json:"podActuates,omitempty"`
	PodActuated *corev1.ResourceRequirements `json:"podActuated,omitempty"`
}

// Resizing is the state of a pod's resize, for its status and events.
type Resizing struct {
	Allocation
	// Reason (Deferred, Infeasible) and Message tell why the pod does not have what its spec asks for by now; empty
	// while it has.
	Reason, Message string
	// Error is why the containers could not be given what the pod has, "" if they could.
	Error string
}

// ResizeCondition reports whether conditions of that type are about a resize: they are there only while they hold.
func ResizeCondition(t corev1.PodConditionType) bool {
	return t == corev1.PodResizePending || t == corev1.PodResizeInProgress
}
