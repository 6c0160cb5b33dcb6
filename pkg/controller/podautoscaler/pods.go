package podautoscaler

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/controller"
)

// sorted are a target's pods by what their metrics are worth.
//
// Pods that failed or are going are in none of the three.
type sorted struct {
	// ready have a value that counts.
	ready map[string]podValue
	// unready have not begun to work: what they use says nothing of what they will. missing have no value.
	unready, missing []string
}

// sortPods looks at each pod. Those that failed or terminate are left out: their share falls to the others. Only for
// CPU does readiness matter, because what pods use while they start is not their load. Memory that they took stays
// taken.
func sortPods(pods []*corev1.Pod, values map[string]podValue, cpu bool, now time.Time, c Config) sorted {
	s := sorted{ready: map[string]podValue{}}
	for _, p := range pods {
		v, known := values[p.Name]
		switch {
		case p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed:
		case p.Status.Phase == corev1.PodPending:
			s.unready = append(s.unready, p.Name)
		case !known:
			s.missing = append(s.missing, p.Name)
		case cpu && starting(p, v, now, c):
			s.unready = append(s.unready, p.Name)
		default:
			s.ready[p.Name] = v
		}
	}
	return s
}

// starting reports whether a pod's CPU usage is that of its start. Within CPUInitialization of its start, it is if the
// pod is not ready, or became ready only within the window that was measured. Later, it is if the pod is not ready and
// last changed within ReadinessDelay of its start, that is, has never been ready. These are the documented flags
// --horizontal-pod-autoscaler-cpu-initialization-period and --horizontal-pod-autoscaler-initial-readiness-delay.
func starting(p *corev1.Pod, v podValue, now time.Time, c Config) bool {
	ready := controller.PodCondition(p, corev1.PodReady)
	if ready == nil || p.Status.StartTime == nil {
		return true
	}
	unready, start := ready.Status == corev1.ConditionFalse, p.Status.StartTime.Time
	if now.Before(start.Add(c.CPUInitialization)) {
		return unready || v.at.Before(ready.LastTransitionTime.Add(v.window))
	}
	return unready && start.Add(c.ReadinessDelay).After(ready.LastTransitionTime.Time)
}

// readyPods counts for metrics that are about the whole target, where unready pods carry no load.
func readyPods(pods []*corev1.Pod) int {
	n := 0
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning && controller.PodReady(p) {
			n++
		}
	}
	return n
}

// requests are the milli-units of a resource that each pod, or its container of a name (not ""), asks for; one without
// such a container asks for none.
//
// One pod without a request fails all: a share of the requests would be wrong for the target as a whole.
func requests(pods []*corev1.Pod, name corev1.ResourceName, container string) (map[string]int64, error) {
	out := make(map[string]int64, len(pods))
	for _, p := range pods {
		n, err := request(p, name, container)
		if err != nil {
			return nil, err
		}
		out[p.Name] = n
	}
	return out, nil
}

// request prefers the request of the whole pod, where it has one (KEP-2837). A container without a request is an error,
// because a share of nothing has no meaning.
func request(p *corev1.Pod, name corev1.ResourceName, container string) (int64, error) {
	if r := p.Spec.Resources; r != nil && container == "" {
		if q, ok := r.Requests[name]; ok {
			return q.MilliValue(), nil
		}
	}
	var sum int64
	for _, c := range lasting(p) {
		if container != "" && container != c.Name {
			continue
		}
		q, ok := c.Resources.Requests[name]
		if !ok {
			return 0, fmt.Errorf("missing request for %s in container %s of Pod %s", name, c.Name, p.Name)
		}
		sum += q.MilliValue()
	}
	return sum, nil
}

// lasting are the containers that run as long as the pod does.
//
// Containers that only initialize the pod are over when it works, and their requests with them.
func lasting(p *corev1.Pod) []corev1.Container {
	out := append([]corev1.Container(nil), p.Spec.Containers...)
	for _, c := range p.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out = append(out, c)
		}
	}
	return out
}
