package eviction

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"bonsai/pkg/kubelet/runtime"
)

// Conditions are the node's conditions of pressure. The Manager writes them; the Node's status and the admission of
// pods read them. They exist apart from the Manager because it needs pods that it can end, and starting pods already
// needs these answers. The zero value has no condition. Safe for concurrent use.
type Conditions struct {
	mu   sync.Mutex
	held []corev1.NodeConditionType
}

// Under reports whether the node has a condition of pressure.
func (c *Conditions) Under(condition corev1.NodeConditionType) bool {
	return slices.Contains(c.all(), condition)
}

// Refuse returns why the node takes no such pod now, "" if it does. Critical pods are always taken. Others are refused
// while disk or process ids run short. While only memory runs short, pods are taken that request some or tolerate the
// taint.
func (c *Conditions) Refuse(pod *corev1.Pod) string {
	held := c.all()
	if len(held) == 0 || runtime.Critical(pod) {
		return ""
	}
	if len(held) == 1 && held[0] == corev1.NodeMemoryPressure {
		taint := &corev1.Taint{Key: corev1.TaintNodeMemoryPressure, Effect: corev1.TaintEffectNoSchedule}
		tolerates := func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Background(), taint, false) }
		if runtime.QOSClass(pod) != corev1.PodQOSBestEffort || slices.ContainsFunc(pod.Spec.Tolerations, tolerates) {
			return ""
		}
	}
	return fmt.Sprintf("The node had condition: %v. ", held)
}

func (c *Conditions) all() []corev1.NodeConditionType {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held
}

// set replaces the conditions and reports whether they changed. The list must not be written to afterwards.
func (c *Conditions) set(now []corev1.NodeConditionType) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := slices.Equal(c.held, now)
	c.held = now
	return !same
}
