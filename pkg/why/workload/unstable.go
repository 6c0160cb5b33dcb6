package workload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// What counts as happening again and again: so many pods that somebody ended within a time, the last a short while ago.
const (
	manyEnded    = 2
	endedWithin  = time.Hour
	lastWithin   = 15 * time.Minute
	restartedFor = 15 * time.Minute
)

// ending are the reasons of events by which pods are ended that were well.
var ending = []string{"TaintManagerEviction", "Evicted", "Preempted", "NodeShutdown", "DeletingNode", "DeadlineExceeded",
	"Descheduled"}

// unstable explains a workload whose pods do not stay, which looks well whenever all happen to be ready. owner is what
// controls the pods.
func unstable(ctx context.Context, c *why.Case, owner why.Object, pods []*corev1.Pod) ([]why.Cause, error) {
	var now []why.Cause
	for i, p := range pods {
		if i == maxPods || len(now) > 0 {
			break
		}
		if p.DeletionTimestamp != nil || !ready(p) || !doubtful(c, p) { // one that ends has no more to say
			continue
		}
		causes, err := c.Causes(ctx, why.ObjectOf("", "Pod", p))
		if err != nil {
			return nil, err
		}
		if len(causes) > 0 {
			text := "is ready, and will not stay so"
			if causes[0].Code == "StaleConfiguration" {
				text = "is ready, and does not run with what is configured now"
			}
			now = []why.Cause{{Code: "PodDoubtful", Text: fmt.Sprintf("Pod %s %s.", p.Name, text),
				Evidence: []why.Evidence{why.SeeMade(why.ObjectOf("", "Pod", p), p)}, Because: causes}}
		}
	}
	ended, last := endedPods(ctx, c, owner, pods)
	if len(ended) < manyEnded || c.Now.Sub(why.LastSeen(last)) > lastWithin {
		return now, nil
	}
	cause := why.Cause{Code: "PodsDoNotStay",
		Text: fmt.Sprintf("Its pods do not stay: %s of it were ended within an hour (%s), and others made in their place. "+
			"The last was %s, %s ago: %s.", why.Count(len(ended), "pod"), last.Reason, last.InvolvedObject.Name,
			why.Span(c.Now.Sub(why.LastSeen(last))), why.Quote(last.Message)),
		Evidence: []why.Evidence{why.SeeEvent(last)}}
	for _, n := range now {
		cause.Because = append(cause.Because, n.Because...)
	}
	return []why.Cause{cause}, nil
}

// orNotReady returns restless, or what keeps pods from being ready: the status of a workload that looks well may be
// older than that of its pods.
func orNotReady(ctx context.Context, c *why.Case, restless []why.Cause, pods []*corev1.Pod) ([]why.Cause, error) {
	if len(restless) > 0 {
		return restless, nil
	}
	return notReady(ctx, c, pods)
}

// restlessly adds to what looks well that not all is, if something says that.
func restlessly(state string, restless []why.Cause) string {
	if len(restless) == 0 {
		return state + "."
	}
	return state + ", but not all is well."
}

// doubtful reports whether something in a ready pod says that it may not stay ready, before it is asked in full.
func doubtful(c *why.Case, p *corev1.Pod) bool {
	if p.Spec.ActiveDeadlineSeconds != nil {
		return true
	}
	for i := range p.Spec.Containers {
		if c := &p.Spec.Containers[i]; len(c.EnvFrom) > 0 || slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool {
			return e.ValueFrom != nil
		}) || slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.SubPath != "" }) {
			return true
		}
	}
	for _, t := range p.Spec.Tolerations {
		if t.TolerationSeconds != nil && t.Key != corev1.TaintNodeNotReady && t.Key != corev1.TaintNodeUnreachable {
			return true
		}
	}
	return slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		t := s.LastTerminationState.Terminated
		return s.RestartCount > 0 && t != nil && c.Now.Sub(t.FinishedAt.Time) < restartedFor
	})
}

// endedPods are the pods of a controller that were ended a while ago, and the newest event that says so. Pods that are
// gone are known by the name of their controller.
func endedPods(ctx context.Context, c *why.Case, owner why.Object, pods []*corev1.Pod) (names map[string]bool,
	last *corev1.Event) {
	names = map[string]bool{}
	young := func(p *corev1.Pod) bool { return c.Now.Sub(p.CreationTimestamp.Time) < endedWithin }
	if len(pods) > 0 && !slices.ContainsFunc(pods, young) {
		return names, nil // nothing was made in place of anything
	}
	all, _ := why.List[corev1.Event](ctx, c.World, owner.Namespace, nil)
	for _, e := range all {
		o := &e.InvolvedObject
		if o.Kind != "Pod" || !slices.Contains(ending, e.Reason) || c.Now.Sub(why.LastSeen(e)) > endedWithin ||
			!strings.HasPrefix(o.Name, owner.Name+"-") || isStill(pods, o) {
			continue
		}
		names[string(o.UID)+o.Name] = true
		if last == nil || why.LastSeen(e).After(why.LastSeen(last)) {
			last = e
		}
	}
	return names, last
}

// isStill reports whether an event is about a pod that is there and not ending.
func isStill(pods []*corev1.Pod, o *corev1.ObjectReference) bool {
	return slices.ContainsFunc(pods, func(p *corev1.Pod) bool {
		return p.Name == o.Name && p.UID == o.UID && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning
	})
}
