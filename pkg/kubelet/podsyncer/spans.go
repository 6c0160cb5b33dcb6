package podsyncer

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/trace"
)

// did records a step of a pod that began at a time and ends now, and the reason why it failed, "" if it did not.
func (s *Syncer) did(pod *corev1.Pod, step string, begun time.Time, reason string) {
	if !s.cfg.Tracer.Records(pod.UID) {
		return
	}
	var err error
	if reason != "" {
		err = errors.New(reason)
	}
	s.cfg.Tracer.Step(trace.Pod(pod), trace.Step{Name: "kubelet." + step, Start: begun, End: s.cfg.Now(), Err: err})
}
