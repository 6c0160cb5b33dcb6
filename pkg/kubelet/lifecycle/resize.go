package lifecycle

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/kubelet/runtime"
)

// Update is one container that gets other resources while it runs.
type Update struct {
	Container *corev1.Container
	Status    *runtime.Container
}

// behind reports whether a container runs with other resources than the pod has for it. A container that does not run
// gets them when it starts.
//
// Resizing in place is KEP-1287. Actuated is what the cgroups were last given; the runtime's report is not compared
// here, because it rounds.
func behind(f Facts, c *corev1.Container) bool {
	has, ok := f.Resize.Actuated[c.Name]
	s := f.Runtime.Container(c.Name)
	return ok && s != nil && s.State == runtime.StateRunning && !runtime.SameResources(has, runtime.Effective(f.Pod, c))
}

// ResizeInProgress reports whether the pod's containers are still to be given what the pod has.
func ResizeInProgress(f Facts) bool {
	return f.Resize.PodActuates || slices.ContainsFunc(resizable(f.Pod), func(c *corev1.Container) bool {
		return behind(f, c)
	})
}

// resizable returns the containers that can be resized: ephemeral ones have no resources.
func resizable(pod *corev1.Pod) []*corev1.Container {
	var out []*corev1.Container
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			out = append(out, &list[i])
		}
	}
	return out
}

// restartsForResize reports whether a running container must restart to get its new resources: the resize policy of one
// of the resources that change says so.
//
// It restarts once for all resources, even if only one of them has the policy RestartContainer.
func restartsForResize(f Facts, c *corev1.Container) bool {
	if !behind(f, c) {
		return false
	}
	has, gets := f.Resize.Actuated[c.Name], runtime.Effective(f.Pod, c)
	return slices.ContainsFunc(c.ResizePolicy, func(p corev1.ContainerResizePolicy) bool {
		return p.RestartPolicy == corev1.RestartContainer &&
			(!sameAmount(has.Requests, gets.Requests, p.ResourceName) ||
				!sameAmount(has.Limits, gets.Limits, p.ResourceName))
	})
}

func sameAmount(a, b corev1.ResourceList, name corev1.ResourceName) bool {
	x, inA := a[name]
	y, inB := b[name]
	return inA == inB && x.Cmp(y) == 0
}

// resize plans the updates of containers that go on running. Containers that are killed anyway start with the new
// values.
func (p *planner) resize() {
	p.plan.ResizePod = p.Resize.PodActuates
	for _, c := range resizable(p.Pod) {
		killed := slices.ContainsFunc(p.plan.Kill, func(k Kill) bool { return k.Container.Name == c.Name })
		if behind(p.Facts, c) && !killed {
			p.plan.Updates = append(p.plan.Updates, Update{Container: c, Status: p.Runtime.Container(c.Name)})
		}
	}
}

// resizing returns the conditions of a resize: PodResizePending while the node has not granted it, PodResizeInProgress
// while containers do not have what was granted. Both may hold at once, about different generations of the pod.
func resizing(f Facts) []corev1.PodCondition {
	var out []corev1.PodCondition
	if r := f.Resize; r.Reason != "" {
		out = append(out, corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
			Reason: r.Reason, Message: r.Message})
	}
	if ResizeInProgress(f) {
		c := corev1.PodCondition{Type: corev1.PodResizeInProgress, Status: corev1.ConditionTrue,
			ObservedGeneration: f.Resize.Generation}
		if f.Resize.Error != "" {
			c.Reason, c.Message = corev1.PodReasonError, f.Resize.Error
		}
		out = append(out, c)
	}
	return out
}

// The least CPU that cgroups can express, in thousandths: a smaller request or limit shows up as this.
const (
	leastCPURequest = 2
	leastCPULimit   = 10
)

// running returns the resources of a running container, limited to what its spec names: what it was last given, or what
// the runtime reports if that is different. Limits that it only inherits from the pod are left out.
//
// Clients compare the status with the spec to see whether a resize is done, hence the care about rounding (show).
func running(f Facts, c *corev1.Container, s *runtime.Container) corev1.ResourceRequirements {
	has := *c.Resources.DeepCopy()
	if given, ok := f.Resize.Actuated[c.Name]; ok {
		has.Requests, has.Limits = named(given.Requests, c.Resources.Requests), named(given.Limits, c.Resources.Limits)
	}
	told := s.Resources
	if told == nil {
		return has
	}
	show(has.Requests, corev1.ResourceCPU, resource.NewMilliQuantity(told.MilliCPURequest, resource.DecimalSI),
		leastCPURequest)
	show(has.Limits, corev1.ResourceCPU, resource.NewMilliQuantity(told.MilliCPULimit, resource.DecimalSI),
		leastCPULimit)
	show(has.Limits, corev1.ResourceMemory, resource.NewQuantity(told.MemoryLimit, resource.BinarySI), 0)
	return has
}

// named are the amounts of a list that are also in another; nil if there are none.
func named(list, in corev1.ResourceList) corev1.ResourceList {
	var out corev1.ResourceList
	for name, q := range list {
		if _, ok := in[name]; !ok {
			continue
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = q
	}
	return out
}

// show replaces an amount in the list by what the runtime reports, if the list has the resource and the amounts differ.
// least is the smallest amount that the runtime can report, in thousandths: a smaller one that reads as least is no
// difference.
func show(list corev1.ResourceList, name corev1.ResourceName, told *resource.Quantity, least int64) {
	q, ok := list[name]
	if ok && !told.IsZero() && q.Cmp(*told) != 0 && (q.MilliValue() >= least || told.MilliValue() != least) {
		list[name] = *told
	}
}

// DescribeResize returns the message of a resize's events, in upstream's form; problem may be "".
func DescribeResize(pod *corev1.Pod, generation int64, problem string) string {
	type container struct {
		Name      string                      `json:"name"`
		Resources corev1.ResourceRequirements `json:"resources"`
	}
	d := struct {
		Init       []container `json:"initContainers,omitempty"`
		Containers []container `json:"containers"`
		Generation int64       `json:"generation"`
		Error      string      `json:"error,omitempty"`
	}{Generation: generation, Error: problem}
	for _, c := range pod.Spec.InitContainers {
		d.Init = append(d.Init, container{c.Name, c.Resources})
	}
	for _, c := range pod.Spec.Containers {
		d.Containers = append(d.Containers, container{c.Name, c.Resources})
	}
	text, err := json.Marshal(d)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
