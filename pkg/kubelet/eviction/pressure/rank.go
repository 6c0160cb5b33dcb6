package pressure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"bonsai/pkg/kubelet/runtime"
)

// Use is how much of each scarce resource something uses: bytes of memory and disk, inodes, processes.
type Use map[corev1.ResourceName]int64

// Candidate is a pod that may be evicted, with what it uses of the scarce resource.
type Candidate struct {
	Pod *corev1.Pod
	// Use is that of the pod; Containers is that of each container, by name.
	Use        Use
	Containers map[string]Use
}

// Rank orders candidates, the first to go in front: pods that use more than they request come before others, then the
// lowest in priority, then the one that uses most beyond its request. Processes cannot be requested: for them priority
// and number decide.
func Rank(candidates []Candidate, t Threshold) []Candidate {
	name := t.Signal.Resource()
	type ranked struct {
		Candidate
		above int64
	}
	list := make([]ranked, len(candidates))
	for i, c := range candidates {
		list[i] = ranked{c, c.Use[name] - requested(c.Pod, name)}
	}
	slices.SortStableFunc(list, func(a, b ranked) int {
		return cmp.Or(first(a.above > 0, b.above > 0), cmp.Compare(runtime.Priority(a.Pod), runtime.Priority(b.Pod)),
			cmp.Compare(b.above, a.above))
	})
	out := make([]Candidate, len(list))
	for i := range list {
		out[i] = list[i].Candidate
	}
	return out
}

func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// requested returns what a pod requests. It is 0 for what cannot be requested, so that every pod uses more.
func requested(pod *corev1.Pod, name corev1.ResourceName) int64 {
	q := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})[name]
	return q.Value()
}

// Message returns the message of an evicted pod, in upstream's words.
func Message(c Candidate, t Threshold, seen Observations) string {
	name := t.Signal.Resource()
	var b strings.Builder
	fmt.Fprintf(&b, "The node was low on resource: %v. ", name)
	if o, ok := seen[t.Signal]; ok {
		fmt.Fprintf(&b, "Threshold quantity: %s, available: %s. ", amount(name, t.Value.of(o.Capacity)),
			amount(name, o.Available))
	}
	for _, list := range [][]corev1.Container{c.Pod.Spec.InitContainers, c.Pod.Spec.Containers} {
		for i := range list {
			asks := list[i].Resources.Requests[name]
			if uses := c.Containers[list[i].Name][name]; asks.CmpInt64(uses) < 0 {
				fmt.Fprintf(&b, "Container %s was using %s, request is %s, has larger consumption of %v. ",
					list[i].Name, amount(name, uses), asks.String(), name)
			}
		}
	}
	return b.String()
}

func amount(name corev1.ResourceName, n int64) string {
	format := resource.BinarySI
	if name == Inodes || name == Processes {
		format = resource.DecimalSI
	}
	return resource.NewQuantity(n, format).String()
}
