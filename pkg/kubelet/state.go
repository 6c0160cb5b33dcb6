package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/admission"
	"bonsai/pkg/kubelet/executor"
	"bonsai/pkg/kubelet/lifecycle"
	"bonsai/pkg/kubelet/prober"
	"bonsai/pkg/kubelet/runtime"
)

// podState is what the kubelet remembers of a pod between syncs. Only the pod's worker touches it, but for changed.
type podState struct {
	// begun: the pod's helpers were told of it.
	begun bool
	// admitted: the service classes' cgroups count the pod.
	admitted bool
	// rejected is why the node does not take, or not keep, the pod.
	rejected *admission.Rejection
	// disruption is why the kubelet ends a pod that it had taken, "" while it does not.
	disruption string
	// exec is what the executor remembers.
	exec *executor.Pod
	// changed has room for one: something happened to the pod.
	changed chan struct{}
}

func (k *Kubelet) state(uid types.UID) *podState {
	k.mu.Lock()
	defer k.mu.Unlock()
	st := k.states[uid]
	if st == nil {
		st = &podState{exec: executor.NewPod(), changed: make(chan struct{}, 1)}
		k.states[uid] = st
	}
	return st
}

// facts gathers everything decisions are made from, once for each look at the runtime. The pod is one of withStatus.
func (k *Kubelet) facts(pod *corev1.Pod, st *podState, rt *runtime.PodStatus, terminating bool) lifecycle.Facts {
	f := lifecycle.Facts{Pod: pod, Runtime: rt, Probes: map[string]lifecycle.Probes{}, BackOff: k.exec.BackOff(pod, st.exec, rt),
		Terminating: terminating, Now: time.Now()}
	for i := range rt.Containers {
		c := &rt.Containers[i]
		if c.State == runtime.StateRunning {
			id := c.ID.String()
			f.Probes[id] = lifecycle.Probes{Startup: k.probeResult(id, prober.Startup), Readiness: k.probeResult(id, prober.Readiness),
				Liveness: k.probeResult(id, prober.Liveness), PostStart: true}
		}
	}
	return f
}

func (k *Kubelet) probeResult(id string, kind prober.Kind) lifecycle.Result {
	switch k.probes.Result(id, kind) {
	case prober.Success:
		return lifecycle.Success
	case prober.Failure:
		return lifecycle.Failure
	}
	return lifecycle.Unknown
}

// withStatus is the pod with its newest status: what was last set here, with the conditions of others as the API has them.
func (k *Kubelet) withStatus(pod *corev1.Pod) *corev1.Pod {
	p := *pod
	if st, ok := k.status.Get(pod.UID); ok {
		p.Status = st
	} else if runtime.IsStatic(pod) {
		k.mu.Lock()
		if m := k.mirrorLocked(pod); m != nil {
			p.Status = m.Status
		}
		k.mu.Unlock()
	}
	if p.Status.QOSClass == "" {
		p.Status.QOSClass = runtime.QOSClass(pod)
	}
	p.Status = k.status.Shown(pod.UID, p.Status)
	return &p
}

// report computes and sets the status; it returns it.
func (k *Kubelet) report(f lifecycle.Facts, st *podState, ended bool) corev1.PodStatus {
	r := lifecycle.Report{Reasons: st.exec.Reasons(f.Pod), HostIPs: k.node.HostIPs(), Ended: ended, Static: runtime.IsStatic(f.Pod)}
	if st.rejected != nil {
		r.Failed, r.Reason, r.Message, r.Disruption = true, st.rejected.Reason, st.rejected.Message, st.disruption
		r.Refused = !st.admitted && len(f.Runtime.Sandboxes) == 0
	}
	s := lifecycle.Status(f, r)
	shown := s
	if terminal(s.Phase) && f.Runtime.Running() && !terminal(f.Pod.Status.Phase) {
		shown.Phase = f.Pod.Status.Phase // not before all containers have ended
		if shown.Phase == "" {
			shown.Phase = corev1.PodRunning
		}
	}
	if ended || terminal(shown.Phase) {
		k.admission.Release(f.Pod.UID) // before the scheduler can hear of it and send another pod
	}
	k.status.Set(f.Pod.UID, shown)
	return s
}

func terminal(p corev1.PodPhase) bool { return p == corev1.PodFailed || p == corev1.PodSucceeded }
