package syncloop

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/trace"
)

// apiSource handles the pods of the API server.
type apiSource struct{ *Loop }

// Update implements Handler.
func (s apiSource) Update(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if runtime.IsMirror(pod) {
		s.cfg.Pods.UpdateMirror(pod)
		return
	}
	s.updateLocked(pod)
}

func (s apiSource) updateLocked(pod *corev1.Pod) {
	if !s.claimLocked(pod, false, func() { s.updateLocked(pod) }) {
		return
	}
	old := s.cfg.Pods.Update(pod)
	if old == nil {
		s.cfg.Admission.Add(pod)
		if s.cfg.Tracer.Records(pod.UID) {
			now := time.Now()
			s.cfg.Tracer.Step(trace.Pod(pod), trace.Step{Name: "kubelet.seen", Start: now, End: now})
		}
	} else {
		s.cfg.Admission.Update(pod)
		if sameWork(old, pod, s.cfg.Own) {
			return
		}
	}
	// A pod whose containers have ended reads nothing any more.
	if !s.cfg.Workers.Ended(pod.UID) {
		s.cfg.Objects.Track(pod)
	}
	if old != nil && (!maps.Equal(old.Labels, pod.Labels) || !maps.Equal(old.Annotations, pod.Annotations)) {
		s.cfg.Volumes.Update(pod)
	}
	s.cfg.Workers.Update(pod)
}

// Remove implements Handler.
func (s apiSource) Remove(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if runtime.IsMirror(pod) {
		s.cfg.Pods.RemoveMirror(pod)
		return
	}
	s.disclaimLocked(pod, false, func() { s.removeLocked(pod) })
}

func (s apiSource) removeLocked(pod *corev1.Pod) {
	s.cfg.Pods.Remove(pod)
	s.cfg.Admission.Withdraw(pod.UID)
	if s.cfg.Workers.Known(pod.UID) {
		s.cfg.Workers.Remove(pod)
	} else {
		s.cfg.Objects.Untrack(pod.UID)
	}
}

// staticSource handles the static pods.
type staticSource struct{ *Loop }

// Update implements Handler.
func (s staticSource) Update(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updateLocked(pod)
}

func (s staticSource) updateLocked(pod *corev1.Pod) {
	if !s.claimLocked(pod, true, func() { s.updateLocked(pod) }) {
		return
	}
	s.cfg.Pods.Update(pod)
	s.cfg.Admission.Add(pod)
	s.cfg.Workers.Update(pod)
}

// Remove implements Handler. A pod that no worker knows is one of an earlier life of the kubelet: it is ended, too.
func (s staticSource) Remove(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disclaimLocked(pod, true, func() {
		s.cfg.Pods.Remove(pod)
		s.cfg.Admission.Withdraw(pod.UID)
		s.cfg.Workers.Remove(pod)
	})
}

// sameWork reports whether two versions of a pod ask the kubelet for the same: only what it reports itself differs. own
// names the conditions that the kubelet writes.
func sameWork(a, b *corev1.Pod, own func(corev1.PodConditionType) bool) bool {
	if a.UID != b.UID || a.Generation != b.Generation || !equality.Semantic.DeepEqual(a.Spec, b.Spec) ||
		!equality.Semantic.DeepEqual(a.Labels, b.Labels) ||
		!equality.Semantic.DeepEqual(a.Annotations, b.Annotations) ||
		!a.DeletionTimestamp.Equal(b.DeletionTimestamp) ||
		!equality.Semantic.DeepEqual(a.DeletionGracePeriodSeconds, b.DeletionGracePeriodSeconds) {
		return false
	}
	return equality.Semantic.DeepEqual(foreign(a, own), foreign(b, own))
}

func foreign(p *corev1.Pod, own func(corev1.PodConditionType) bool) map[corev1.PodConditionType]corev1.ConditionStatus {
	out := map[corev1.PodConditionType]corev1.ConditionStatus{}
	for _, c := range p.Status.Conditions {
		if !own(c.Type) {
			out[c.Type] = c.Status
		}
	}
	return out
}
