package podsyncer

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/volume"
)

// End makes a pod end that the node cannot keep; the caller wakes its worker. The first reason stays. It returns false
// if there already is one, or if no worker has begun with the pod.
func (s *Syncer) End(uid types.UID, why runtime.Ending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.states[uid]
	if st == nil || st.ending != nil {
		return false
	}
	st.ending = &why
	return true
}

// ending returns why the node ends a pod, nil while it does not.
func (s *Syncer) ending(st *podState) *runtime.Ending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return st.ending
}

// end records and shows the end of a pod that the node cannot keep. The worker then terminates it.
func (s *Syncer) end(f lifecycle.Facts, st *podState, why *runtime.Ending) {
	st.rejected = &admission.Rejection{Reason: why.Reason, Message: why.Message}
	st.disruption = why.Message
	if why.Signal != "" {
		s.cfg.Evicted(why.Signal)
	}
	s.cfg.Events.Pod(f.Pod, corev1.EventTypeWarning, why.Reason, why.Message)
	s.report(f, st, false)
}

// expire ends a pod that has used up its activeDeadlineSeconds, and reports whether it did.
func (s *Syncer) expire(f lifecycle.Facts, st *podState, deadline time.Time) bool {
	if deadline.IsZero() || f.Now.Before(deadline) {
		return false
	}
	st.rejected = &admission.Rejection{Reason: lifecycle.ReasonDeadlineExceeded,
		Message: lifecycle.MessageDeadlineExceeded}
	s.cfg.Events.Pod(f.Pod, corev1.EventTypeNormal, st.rejected.Reason, st.rejected.Message)
	s.report(f, st, false)
	return true
}

// attachPatience is how long a pod waits for a volume when the node can attach no more of its kind: another pod may
// leave meanwhile.
const attachPatience = 2*time.Minute + 3*time.Second

// beyondLimit ends a pod that has waited attachPatience for a volume beyond the node's limit. Its controller may then
// make another one, elsewhere.
func (s *Syncer) beyondLimit(f lifecycle.Facts, st *podState, err error) bool {
	if _, is := errors.AsType[*volume.LimitError](err); !is || f.Now.Sub(st.since) < attachPatience {
		return false
	}
	st.rejected = &admission.Rejection{Reason: "VolumeAttachmentLimitExceeded", Message: err.Error()}
	s.cfg.Events.Pod(f.Pod, corev1.EventTypeWarning, st.rejected.Reason, st.rejected.Message)
	s.report(f, st, false)
	return true
}
