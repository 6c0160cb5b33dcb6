package node

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Resources says how the machine is divided: allocatable is its capacity minus what is reserved and what the eviction
// thresholds keep free.
type Resources struct {
	// MaxPods is 110 by default.
	MaxPods int64
	// Reserved is kubeReserved and systemReserved together.
	Reserved corev1.ResourceList
	// Kept is what eviction keeps free.
	Kept corev1.ResourceList
}

func (r Resources) capacity(machine corev1.ResourceList) corev1.ResourceList {
	out := machine.DeepCopy()
	pods := r.MaxPods
	if pods == 0 {
		pods = 110
	}
	out[corev1.ResourcePods] = *resource.NewQuantity(pods, resource.DecimalSI)
	return out
}

// Allocatable returns what pods may request together on a machine of that capacity, never less than 0.
func (r Resources) Allocatable(machine corev1.ResourceList) corev1.ResourceList {
	out := r.capacity(machine)
	for name, q := range out {
		for _, less := range []corev1.ResourceList{r.Reserved, r.Kept} {
			if amount, ok := less[name]; ok {
				q.Sub(amount)
			}
		}
		if q.Sign() < 0 {
			q = *resource.NewQuantity(0, q.Format)
		}
		out[name] = q
	}
	// Huge pages are memory that others can no longer use.
	memory := out[corev1.ResourceMemory]
	for name, q := range out {
		if strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) && q.Sign() > 0 {
			memory.Sub(q)
		}
	}
	out[corev1.ResourceMemory] = memory
	return out
}
