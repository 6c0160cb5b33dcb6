package podsyncer

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/runtime"
)

// facts gathers everything that decisions are made from, once for each look at the runtime. pod has its newest status.
func (s *Syncer) facts(pod *corev1.Pod, st *podState, rt *runtime.PodStatus, terminating bool) lifecycle.Facts {
	pod, resize := s.cfg.Admission.Allocation(pod)
	if st.resize.doing == resize.Generation {
		resize.Error = st.resize.problem
	}
	f := lifecycle.Facts{Pod: pod, Resize: resize, Runtime: rt, Probes: map[string]lifecycle.Probes{},
		BackOff:     s.cfg.Executor.BackOff(pod, st.exec, rt),
		Terminating: terminating, Now: s.cfg.Now()}
	for i := range rt.Containers {
		c := &rt.Containers[i]
		if c.State == runtime.StateRunning {
			id := c.ID.String()
			f.Probes[id] = lifecycle.Probes{Startup: s.cfg.Probes.Result(id, prober.Startup),
				Readiness: s.cfg.Probes.Result(id, prober.Readiness),
				Liveness:  s.cfg.Probes.Result(id, prober.Liveness), PostStart: true}
		}
	}
	return f
}

// updateProbes brings the probes up to date with the pod's containers and address.
func (s *Syncer) updateProbes(pod *corev1.Pod, rt *runtime.PodStatus) {
	ip := ""
	if box := rt.Sandbox(); pod.Spec.HostNetwork {
		if ips := s.cfg.HostIPs(); len(ips) > 0 {
			ip = ips[0]
		}
	} else if box != nil && len(box.IPs) > 0 {
		ip = box.IPs[0]
	}
	s.cfg.Probes.Update(pod, prober.TargetsOf(pod, rt, ip))
}

// report computes the status, sets it and returns it. The order protects the node from too many pods: a pod's place and
// devices are released before its end becomes visible, because the scheduler sends the next pod as soon as it sees it.
// The phase that is shown does not become final before all containers have ended; the one that is returned may.
func (s *Syncer) report(f lifecycle.Facts, st *podState, ended bool) corev1.PodStatus {
	r := lifecycle.Report{Reasons: st.exec.Reasons(f.Pod), HostIPs: s.cfg.HostIPs(), Ended: ended,
		Static: runtime.IsStatic(f.Pod), Health: s.cfg.Resources.Health(f.Pod)}
	if st.rejected != nil {
		r.Failed, r.Reason, r.Message, r.Disruption = true, st.rejected.Reason, st.rejected.Message, st.disruption
		r.Refused = !st.admitted && len(f.Runtime.Sandboxes) == 0
	}
	s.countEnds(f, st)
	now := lifecycle.Status(f, r)
	shown := now
	if terminal(now.Phase) && f.Runtime.Running() && !terminal(f.Pod.Status.Phase) {
		shown.Phase = f.Pod.Status.Phase // not before all containers have ended
		if shown.Phase == "" {
			shown.Phase = corev1.PodRunning
		}
	}
	if ended || terminal(shown.Phase) {
		s.cfg.Resources.Release(f.Pod.UID)
		s.cfg.Admission.Release(f.Pod.UID) // before the scheduler can hear of it and send another pod
	}
	if before := f.Pod.Status.Phase; shown.Phase == corev1.PodRunning && st.begun && !st.ran {
		if st.ran = true; before != corev1.PodRunning {
			s.tellRunning(f, st)
		}
	}
	s.cfg.Status.Set(f.Pod.UID, shown)
	return now
}

// countEnds counts the containers that have ended since the pod's first round, each once. An earlier kubelet has
// counted those that ended before.
func (s *Syncer) countEnds(f lifecycle.Facts, st *podState) {
	ended := map[string]bool{}
	count := func(kind runtime.Kind, name string) {
		for i := range f.Runtime.Containers {
			c := &f.Runtime.Containers[i]
			if c.Name != name || c.State != runtime.StateExited {
				continue
			}
			if !st.ended[c.ID.ID] && st.begun && c.FinishedAt.After(st.since) {
				s.cfg.Terminated(kind, c.ExitCode)
			}
			ended[c.ID.ID] = true
		}
	}
	for i := range f.Pod.Spec.InitContainers {
		count(runtime.Init, f.Pod.Spec.InitContainers[i].Name)
	}
	for i := range f.Pod.Spec.Containers {
		count(runtime.Regular, f.Pod.Spec.Containers[i].Name)
	}
	for i := range f.Pod.Spec.EphemeralContainers {
		count(runtime.Ephemeral, f.Pod.Spec.EphemeralContainers[i].Name)
	}
	st.ended = ended // bounded by what the runtime has
}

// tellRunning reports how long a pod's start took. A static pod has no creation time.
func (s *Syncer) tellRunning(f lifecycle.Facts, st *podState) {
	created, images := time.Duration(0), st.exec.Waited()
	if !runtime.IsStatic(f.Pod) && !f.Pod.CreationTimestamp.IsZero() {
		created = s.cfg.Now().Sub(f.Pod.CreationTimestamp.Time)
	}
	for i := range f.Pod.Spec.InitContainers {
		if c := f.Runtime.Container(f.Pod.Spec.InitContainers[i].Name); c != nil && c.State == runtime.StateExited {
			images += c.FinishedAt.Sub(c.StartedAt)
		}
	}
	s.cfg.Running(s.cfg.Now().Sub(st.since), created, images)
}

func terminal(p corev1.PodPhase) bool { return p == corev1.PodFailed || p == corev1.PodSucceeded }
