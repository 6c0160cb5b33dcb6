package placement

import (
	"fmt"
	"slices"
	"sort"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/scheduler/model"
)

// unit is the smallest amount of a resource that is worth a word, in what model.Resource counts it in.
func unit(name corev1.ResourceName) int64 {
	switch name {
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return 1 << 20
	}
	return 1
}

// amount writes an amount of a resource as manifests do.
func amount(name corev1.ResourceName, v int64) string {
	switch name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(v, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		switch {
		case v == 0:
			return "0"
		case v%(1<<30) == 0:
			return fmt.Sprintf("%dGi", v>>30)
		case v%(1<<20) == 0:
			return fmt.Sprintf("%dMi", v>>20)
		case v >= 1<<30:
			return fmt.Sprintf("%.1fGi", float64(v)/(1<<30))
		case v >= 1<<20:
			return fmt.Sprintf("%.1fMi", float64(v)/(1<<20))
		}
	}
	return fmt.Sprint(v)
}

// called is how sentences name a resource.
func called(name corev1.ResourceName) string {
	if name == corev1.ResourceCPU {
		return "CPU"
	}
	return string(name)
}

// most is the part of a request that may be asked to go: a pod that asks for nearly nothing was not meant.
const most = 0.9

// askLess finds by how little less the pod must ask for a resource to fit beside the node's pods, by asking the
// filters.
func (s *search) askLess(f finding, n *model.NodeInfo) []change {
	name, step := corev1.ResourceName(f.what), unit(corev1.ResourceName(f.what))
	want := s.info.Requests.Of(name)
	refused := func(less int64) bool {
		info := *s.info
		info.Requests = s.info.Requests.Clone()
		info.Requests.Add(only(name, less), -1)
		for _, st := range s.trial.For(&info).On(n) {
			for _, other := range findings(st, &info, n) {
				if other.key() == f.key() {
					return true
				}
			}
		}
		return false
	}
	steps := int(float64(want) * most / float64(step))
	k := 1 + sort.Search(max(steps, 0), func(k int) bool { return !refused(int64(k+1) * step) })
	if k > steps {
		return nil
	}
	less := int64(k) * step
	c := change{kind: "less " + f.what, cost: costAskLess + 40*float64(less)/float64(want),
		text: fmt.Sprintf("Ask for %s less %s", amount(name, less), called(name))}
	container, rest, pod := shrink(s.pod, name, less)
	if container == "" {
		return nil
	}
	if slices.ContainsFunc(s.pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == container }) {
		c.text += ", in init container " + container
	}
	c.pod, c.command = pod, s.owner.request(container, name, rest)
	return []change{c}
}

// only is an amount of one resource.
func only(name corev1.ResourceName, v int64) *model.Resource {
	switch name {
	case corev1.ResourceCPU:
		return &model.Resource{MilliCPU: v}
	case corev1.ResourceMemory:
		return &model.Resource{Memory: v}
	case corev1.ResourceEphemeralStorage:
		return &model.Resource{EphemeralStorage: v}
	}
	return &model.Resource{Scalar: map[corev1.ResourceName]int64{name: v}}
}

// shrink returns the container that asks for most of a resource, what it may ask for instead, and how that changes a
// pod. The name is "" if no container alone can ask for so much less.
func shrink(pod *corev1.Pod, name corev1.ResourceName, less int64) (container, rest string, to func(*corev1.Pod)) {
	for _, list := range []func(*corev1.Pod) []corev1.Container{
		func(p *corev1.Pod) []corev1.Container { return p.Spec.Containers },
		func(p *corev1.Pod) []corev1.Container { return p.Spec.InitContainers },
	} {
		at, largest := -1, int64(0)
		for i, c := range list(pod) {
			if v := value(name, c.Resources.Requests[name]); v > largest {
				at, largest = i, v
			}
		}
		if at < 0 || largest <= less {
			continue
		}
		left := quantity(name, largest-less)
		return list(pod)[at].Name, left.String(), func(p *corev1.Pod) {
			list(p)[at].Resources.Requests[name] = left
		}
	}
	return "", "", nil
}

func value(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

func quantity(name corev1.ResourceName, v int64) resource.Quantity {
	switch name {
	case corev1.ResourceCPU:
		return *resource.NewMilliQuantity(v, resource.DecimalSI)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return *resource.NewQuantity(v, resource.BinarySI)
	}
	return *resource.NewQuantity(v, resource.DecimalSI)
}
