package backends

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/controller"
)

// Triggers find out, for each Service, when the change happened that its endpoints are about to be written for: the
// annotation endpoints.kubernetes.io/last-change-trigger-time says so, by which the delay of the whole way to the
// proxies is measured
// (https://github.com/kubernetes/community/blob/master/sig-scalability/slos/network_programming_latency.md).
type Triggers struct {
	mu    sync.Mutex
	known map[controller.Key]triggerState
}

// triggerState is what a Service and its pods were when last asked about.
type triggerState struct {
	service types.UID
	pods    map[types.UID]time.Time
}

// NewTriggers returns what knows of no Service yet.
func NewTriggers() *Triggers { return &Triggers{known: map[controller.Key]triggerState{}} }

// Earliest returns the earliest change of readiness of the pods since it was last asked for this Service, or the
// Service's creation if it was not asked yet; zero if nothing that has a time changed.
func (t *Triggers) Earliest(svc *corev1.Service, pods []*corev1.Pod) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := controller.KeyOf(svc)
	was, asked := t.known[key]
	asked = asked && was.service == svc.UID
	var first time.Time
	note := func(at time.Time) {
		if !at.IsZero() && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	is := triggerState{service: svc.UID, pods: map[types.UID]time.Time{}}
	for _, p := range pods {
		if c := controller.PodCondition(p, corev1.PodReady); c != nil {
			is.pods[p.UID] = c.LastTransitionTime.Time
			if before, ok := was.pods[p.UID]; !asked || !ok || !before.Equal(c.LastTransitionTime.Time) {
				note(c.LastTransitionTime.Time)
			}
		}
	}
	if !asked {
		note(svc.CreationTimestamp.Time)
	}
	t.known[key] = is
	return first
}

// Forget drops a Service that is gone.
func (t *Triggers) Forget(key controller.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, key)
}

// WithTrigger returns the annotations with the time of the change that they are written for, without one if it is zero.
func WithTrigger(annotations map[string]string, at time.Time) map[string]string {
	out := maps.Clone(annotations)
	delete(out, corev1.EndpointsLastChangeTriggerTime)
	if at.IsZero() {
		return out
	}
	if out == nil {
		out = map[string]string{}
	}
	out[corev1.EndpointsLastChangeTriggerTime] = at.UTC().Format(time.RFC3339Nano)
	return out
}
