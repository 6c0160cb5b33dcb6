package podsyncer

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/lifecycle"
)

const (
	// evictionGrace is what containers of an evicted pod get: they fill the disk meanwhile.
	evictionGrace = time.Second
	reasonEvicted = "Evicted"
)

// evict ends a pod that uses more storage than it may.
func (s *Syncer) evict(f lifecycle.Facts, st *podState) bool {
	why := s.cfg.Storage.Excess(f.Pod.UID)
	if why == nil || f.Pod.DeletionTimestamp != nil {
		return false
	}
	st.rejected = &admission.Rejection{Reason: reasonEvicted, Message: why.Message}
	st.disruption = why.Message
	s.cfg.Evicted(why.Signal)
	s.cfg.Events.Pod(f.Pod, corev1.EventTypeWarning, reasonEvicted, why.Message)
	s.report(f, st, false)
	return true
}

// expire ends a pod that has used up its time.
func (s *Syncer) expire(f lifecycle.Facts, st *podState, deadline time.Time) bool {
	if deadline.IsZero() || f.Now.Before(deadline) {
		return false
	}
	st.rejected = &admission.Rejection{Reason: lifecycle.ReasonDeadlineExceeded, Message: lifecycle.MessageDeadlineExceeded}
	s.cfg.Events.Pod(f.Pod, corev1.EventTypeNormal, st.rejected.Reason, st.rejected.Message)
	s.report(f, st, false)
	return true
}
