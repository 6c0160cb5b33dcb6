package story

import (
	"slices"
	"strings"
	"time"

	"bonsai/api/traces"
)

// Ended is the attribute of an inferred root span that ends when the object did, and not when it was Ready. Its value
// says how, and is that of Phase.Ended.
const Ended = "ended"

// Values of Phase.Ended beside the last phase of a pod, "succeeded" or "failed".
const (
	// Deleted is that the object was deleted before it was ever Ready.
	Deleted = "deleted"
	// Stopped is that the object was deleted, and nobody knows whether it was Ready before.
	Stopped = "stopped"
)

// podPhase is the attribute of a pod's root span with the phase that the pod had then. A root is recorded when a pod is
// Ready, or when it has ended without having been.
const podPhase = "k8s.pod.status.phase"

const deletion = "kubelet.delete"

var (
	// stops are the steps of an object's end.
	stops = []string{"kubelet.stop", "kubelet.prestop", "kubelet.unsandbox", "kubelet.cleanup", deletion}
	// begins are the steps after which a pod is not stopping: it gets a new sandbox after its old one was stopped.
	begins = []string{"kubelet.sandbox", "kubelet.pull", "kubelet.create", "kubelet.start"}
)

// stopping returns when an object began to stop for good.
func stopping(steps []*Step) (at time.Time, ok bool) {
	var begun time.Time
	for _, s := range steps {
		if slices.Contains(begins, s.Name) {
			begun = latest(begun, s.Start)
		}
	}
	for _, s := range steps {
		if slices.Contains(stops, s.Name) && !s.Start.Before(begun) && (!ok || s.Start.Before(at)) {
			at, ok = s.Start, true
		}
	}
	return at, ok
}

// soon is how long after a pod's last status the kubelet deletes the object at the latest, if the pod ended because it
// was deleted. An evicted pod has ended too, and its object stays.
const soon = time.Minute

// endOf returns when a startup was over, by the root of its trace, and how it ended: "" for Ready. stop is when the
// object began to stop, the zero time if it did not. The time in which a pod stops is no part of its startup.
func endOf(root *traces.Span, stop time.Time, shutdown []*Step) (end time.Time, how string) {
	end, how = root.End(), root.Attributes[Ended]
	if phase := strings.ToLower(root.Attributes[podPhase]); how == "" && (phase == "succeeded" || phase == "failed") {
		how = phase
	}
	if how == "" || stop.IsZero() || !stop.Before(end) || stop.Before(root.Start) {
		return end, how
	}
	if at, ok := deletedAt(shutdown); ok && at.Sub(end) <= soon {
		how = Deleted
	}
	return stop, how
}

// neverReady reports whether a pod without a root was deleted before it was Ready: its trace is known from the
// scheduler on, so that it would have the root.
func neverReady(startup, shutdown []*Step) bool {
	_, gone := deletedAt(shutdown)
	return gone && slices.ContainsFunc(startup, func(s *Step) bool { return s.Name == "scheduler.bind" })
}

// deletedAt returns when the kubelet deleted an object.
func deletedAt(steps []*Step) (time.Time, bool) {
	i := slices.IndexFunc(steps, func(s *Step) bool { return s.Name == deletion })
	if i < 0 {
		return time.Time{}, false
	}
	return steps[i].Start, true
}

// once leaves out the roots that a kubelet recorded again after a restart. root is the index of the first one. The one
// that ended first counts, and has that index afterwards.
func once(spans []traces.Span, root int) []traces.Span {
	if root < 0 || spans[root].ID == "" {
		return spans
	}
	kept, first := spans[:root+1], &spans[root]
	for _, s := range spans[root+1:] {
		switch again := s.Name == first.Name && s.ID == first.ID && s.TraceID == first.TraceID; {
		case !again:
			kept = append(kept, s)
		case s.End().Before(first.End()):
			*first = s
		}
	}
	return kept
}
