package cgroup

import (
	"errors"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Swap is the node's swap that pods may use (memorySwap.swapBehavior, KEP-2400). The zero value is NoSwap.
type Swap struct {
	// Limited gives containers of burstable pods a part of the node's swap (LimitedSwap). It needs cgroup v2.
	Limited bool
	// NodeMemory and NodeSwap are what the node has, in bytes.
	NodeMemory, NodeSwap int64
}

// errSwapVersion is why LimitedSwap does not start on cgroup v1, which knows only a limit of memory and swap together.
var errSwapVersion = errors.New(
	"memorySwap.swapBehavior: swap feature is enabled and LimitedSwap but it is only supported with cgroupv2")

// limit returns how many bytes of swap a container may use: the part of the node's swap that its memory request is of
// the node's memory. Critical pods and pods of other classes get none; nor does a container without a request, or with
// a limit that equals it.
func (s Swap) limit(pod *corev1.Pod, c *corev1.Container) int64 {
	request, limit := c.Resources.Requests.Memory(), c.Resources.Limits.Memory()
	if !s.Limited || s.NodeMemory <= 0 || runtime.Critical(pod) || runtime.QOSClass(pod) != corev1.PodQOSBurstable ||
		request.Sign() <= 0 || request.Value() > s.NodeMemory || request.Cmp(*limit) == 0 {
		return 0
	}
	return int64(float64(request.Value()) / float64(s.NodeMemory) * float64(s.NodeSwap))
}

// podLimit returns the most swap that the pod's containers can use together.
func (s Swap) podLimit(pod *corev1.Pod) int64 {
	var all int64
	for c := range runtime.Containers(pod) {
		all += s.limit(pod, c)
	}
	return all
}

// MayResize implements cm.Resizer: the swap of a running container cannot follow its request.
func (m *Manager) MayResize(pod *corev1.Pod, has runtime.Resources) string {
	for c := range runtime.Containers(pod) {
		had, ok := has.Containers[c.Name]
		if ok && had.Requests.Memory().Cmp(*c.Resources.Requests.Memory()) != 0 && m.cfg.Swap.limit(pod, c) > 0 &&
			!restartsForMemory(c) {
			return "In-place resize of containers with swap is not supported."
		}
	}
	return ""
}

// restartsForMemory reports whether a change of its memory restarts the container. The new one is then made with the
// new limit of swap.
func restartsForMemory(c *corev1.Container) bool {
	for _, p := range c.ResizePolicy {
		if p.ResourceName == corev1.ResourceMemory {
			return p.RestartPolicy == corev1.RestartContainer
		}
	}
	return false
}
