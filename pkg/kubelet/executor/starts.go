package executor

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/runtime"
)

// starts is what is remembered about the starts of one container: why it waits, and until when.
//
// It is lost with the kubelet: containers then start without the delays of before, and wait reasons are found again.
type starts struct {
	// hash identifies the definition that this is about. A corrected container begins with a clean sheet.
	hash    string
	backOff lifecycle.BackOff
	// reason is why it does not run, its zero value if there is none.
	reason lifecycle.Reason
	// retry is when a container that could not be started is to be tried again, zero: now.
	retry time.Time
	// secrets is images.Fingerprint of the pull secrets with which a pull failed, "" if the container does not wait for
	// an image.
	secrets string
}

// starts returns what is remembered about a container with its present definition.
func (p *Pod) starts(c *corev1.Container) *starts {
	hash := lifecycle.Hash(c)
	s := p.byName[c.Name]
	if s == nil || s.hash != hash {
		s = &starts{hash: hash}
		p.byName[c.Name] = s
	}
	return s
}

// Reasons are the reasons why containers wait, by name.
func (p *Pod) Reasons(pod *corev1.Pod) map[string]lifecycle.Reason {
	out := map[string]lifecycle.Reason{}
	for c := range runtime.Containers(pod) {
		if r := p.starts(c).reason; r != (lifecycle.Reason{}) {
			out[c.Name] = r
		}
	}
	return out
}

// BackOff returns, by name, the times before which containers must not be started again: the later one of the retry
// after a failed start and the back-off after an end. Containers without an entry may start.
//
// The pod's worker puts it into the facts of the round, so that lifecycle stays pure.
func (e *Executor) BackOff(pod *corev1.Pod, p *Pod, rt *runtime.PodStatus) map[string]time.Time {
	out, now := map[string]time.Time{}, time.Now()
	for c := range runtime.Containers(pod) {
		s := p.starts(c)
		until := s.retry
		if ended := lastExited(rt, c.Name); ended != nil {
			if b := s.backOff.Until(ended.FinishedAt, now, e.cfg.MaxBackOff); b.After(until) {
				until = b
			}
		}
		if !until.IsZero() {
			out[c.Name] = until
		}
	}
	return out
}

// lastExited returns the newest container of that name that has ended, nil if there is none. rt is sorted newest first.
func lastExited(rt *runtime.PodStatus, name string) *runtime.Container {
	for i := range rt.Containers {
		if c := &rt.Containers[i]; c.Name == name && c.State == runtime.StateExited {
			return c
		}
	}
	return nil
}
