package lifecycle

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"bonsai/api/podspec"
	"bonsai/pkg/kubelet/runtime"
)

// Reason is why a container waits: "ErrImagePull", "CrashLoopBackOff", …, with its message.
type Reason struct{ Reason, Message string }

// Report is what a status needs besides the facts.
type Report struct {
	// Reasons are, by container name, why a container waits that does not run.
	Reasons map[string]Reason
	// HostIPs are the node's addresses, the primary one first.
	HostIPs []string
	// Reason and Message are the pod's own, where it was rejected or evicted; Failed makes its phase Failed.
	Reason, Message string
	Failed          bool
	// Disruption is why the kubelet ends a pod that has not failed by itself, "" if it does not.
	Disruption string
	// Refused is set if the node never took the pod: there is nothing to report about its containers.
	Refused bool
	// Ended is set when no container of the pod runs and none will.
	Ended bool
	// Static is set for a pod from a manifest on the node.
	Static bool
	// Health is the health of the devices that a container has, by its name.
	Health map[string][]corev1.ResourceStatus
}

// Status computes the status to report. The pod's present status, as last reported, gives the start time, the
// transition times, the conditions of other writers, and the facts about containers that the runtime has forgotten. A
// phase that is final never changes again: controllers have counted the pod.
//
// Fields that other writers own are carried over, or they would be lost.
func Status(f Facts, r Report) corev1.PodStatus {
	old := &f.Pod.Status
	st := corev1.PodStatus{ObservedGeneration: f.Pod.Generation, QOSClass: old.QOSClass, StartTime: old.StartTime,
		NominatedNodeName: old.NominatedNodeName, ResourceClaimStatuses: old.ResourceClaimStatuses,
		ExtendedResourceClaimStatus: old.ExtendedResourceClaimStatus,
		Reason:                      r.Reason, Message: r.Message}
	// When the kubelet first saw the pod, before images and volumes: deadlines count from it. Whole seconds, as the API
	// stores.
	if st.StartTime == nil {
		st.StartTime = &metav1.Time{Time: f.Now.Truncate(time.Second)}
	}
	initDone := initContainersDone(f)
	if !r.Refused {
		st.InitContainerStatuses = statuses(f, r, f.Pod.Spec.InitContainers, old.InitContainerStatuses, runtime.Init,
			initDone)
		st.ContainerStatuses = statuses(f, r, f.Pod.Spec.Containers, old.ContainerStatuses, runtime.Regular, initDone)
		st.EphemeralContainerStatuses = statuses(f, r, ephemerals(f.Pod), old.EphemeralContainerStatuses,
			runtime.Ephemeral, initDone)
	}
	boundMessages(&st)
	switch {
	case old.Phase == corev1.PodFailed || old.Phase == corev1.PodSucceeded:
		st.Phase, st.Reason, st.Message = old.Phase, old.Reason, old.Message
	// Not before the last container has ended: whoever sees Failed may reuse what the pod held.
	case r.Failed && !f.Runtime.Running():
		st.Phase = corev1.PodFailed
	default:
		st.Phase = podPhase(f.Pod, st.InitContainerStatuses, st.ContainerStatuses, r.Ended, r.Static)
	}
	if len(RestartsAll(f)) > 0 && !r.Ended && !r.Failed &&
		(st.Phase == corev1.PodFailed || st.Phase == corev1.PodSucceeded) {
		st.Phase = corev1.PodRunning // those that have ended for good begin again too
	}
	setAddresses(f, r, &st)
	setPodResources(f, &st)
	st.Conditions = mergeConditions(old.Conditions, conditions(f, r, &st), f.Pod.Generation,
		metav1.Time{Time: f.Now.Truncate(time.Second)})
	return st
}

// setPodResources sets what the pod has as a whole: the sum of its containers' requests, or the pod's own; and its own
// requests and limits, if it has any.
func setPodResources(f Facts, st *corev1.PodStatus) {
	if all := resourcehelper.PodRequests(f.Pod,
		resourcehelper.PodResourcesOptions{ExcludeOverhead: true}); len(all) > 0 {
		st.AllocatedResources = all
	}
	switch {
	case f.Resize.PodActuates:
		st.Resources = f.Resize.PodActuated.DeepCopy()
	case resourcehelper.IsPodLevelResourcesSet(f.Pod):
		st.Resources = f.Pod.Spec.Resources.DeepCopy()
	}
}

// setAddresses sets the addresses. While a pod ends, its last ones stay in the status although its sandbox is gone:
// proxies that drain its connections need them.
func setAddresses(f Facts, r Report, st *corev1.PodStatus) {
	for _, ip := range r.HostIPs {
		st.HostIPs = append(st.HostIPs, corev1.HostIP{IP: ip})
	}
	if len(r.HostIPs) > 0 {
		st.HostIP = r.HostIPs[0]
	}
	var ips []string
	switch s := f.Runtime.Sandbox(); {
	case f.Pod.Spec.HostNetwork:
		if s != nil || f.Pod.Status.PodIP != "" {
			ips = r.HostIPs
		}
	case s != nil && len(s.IPs) > 0:
		ips = s.IPs
	case f.Terminating || r.Ended:
		for _, ip := range f.Pod.Status.PodIPs {
			ips = append(ips, ip.IP)
		}
	}
	for _, ip := range ips {
		st.PodIPs = append(st.PodIPs, corev1.PodIP{IP: ip})
	}
	if len(ips) > 0 {
		st.PodIP = ips[0]
	}
}

// ephemerals returns the pod's ephemeral containers in the form of the others.
func ephemerals(pod *corev1.Pod) []corev1.Container {
	out := make([]corev1.Container, 0, len(pod.Spec.EphemeralContainers))
	for _, e := range pod.Spec.EphemeralContainers {
		out = append(out, corev1.Container(e.EphemeralContainerCommon))
	}
	return out
}

// initContainersDone reports whether all init containers have done their work. A regular container that exists proves
// it, even if the runtime has removed the init containers since.
func initContainersDone(f Facts) bool {
	if len(f.Pod.Spec.InitContainers) == 0 {
		return true
	}
	for i := range f.Pod.Spec.Containers {
		if f.Runtime.Container(f.Pod.Spec.Containers[i].Name) != nil {
			return true
		}
	}
	for i := range f.Pod.Spec.InitContainers {
		c := &f.Pod.Spec.InitContainers[i]
		s := f.Runtime.Container(c.Name)
		if s == nil || (podspec.IsSidecar(c) && !hasStarted(f, c, s)) ||
			(!podspec.IsSidecar(c) && (s.State != runtime.StateExited || s.ExitCode != 0)) {
			return false
		}
	}
	return true
}

// statuses returns the statuses of containers of one kind, in upstream's order: init containers as they run, the others
// by name.
func statuses(f Facts, r Report, specs []corev1.Container, old []corev1.ContainerStatus, k runtime.Kind,
	initDone bool) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range specs {
		c := &specs[i]
		s := one(f, r, c, find(old, c.Name), k, initDone)
		s.AllocatedResourcesStatus = r.Health[c.Name]
		out = append(out, s)
	}
	if k != runtime.Init {
		slices.SortFunc(out, func(a, b corev1.ContainerStatus) int { return cmp.Compare(a.Name, b.Name) })
	}
	return out
}

// one returns the status of one container: what the runtime reports, else what was reported before, else that it waits.
//
// The states of a container: running, exited, created (it waits), and unknown, which is taken for lost if it ran at the
// last report. A container that will be started again and has a reason to wait shows that reason, and its end moves to
// the last termination.
func one(f Facts, r Report, c *corev1.Container, old *corev1.ContainerStatus, k runtime.Kind,
	initDone bool) corev1.ContainerStatus {
	cs := f.Runtime.Container(c.Name)
	if cs == nil {
		return forgotten(f, r, c, old, k, initDone)
	}
	st := corev1.ContainerStatus{Name: c.Name, Image: name(cs.Image, c.Image), ImageID: cs.ImageRef,
		ContainerID:  cs.ID.String(),
		RestartCount: int32(cs.Attempt), User: cs.User}
	describe(&st, c)
	started := false
	switch cs.State {
	case runtime.StateRunning:
		has := running(f, c, cs)
		st.Resources = &has
		st.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(cs.StartedAt)}
		started = hasStarted(f, c, cs)
		st.Ready = k != runtime.Ephemeral && started &&
			(c.ReadinessProbe == nil || f.Probes[cs.ID.String()].Readiness == runtime.ProbeSuccess)
		if k == runtime.Init && !podspec.IsSidecar(c) {
			st.Ready = false
		}
	case runtime.StateExited:
		st.State.Terminated = terminated(cs)
		if k == runtime.Init && !podspec.IsSidecar(c) {
			st.Ready = cs.ExitCode == 0
		}
	case runtime.StateCreated:
		st.State.Waiting = waiting(c, k, initDone)
	default:
		switch {
		case old != nil && old.State.Running != nil:
			st.State.Terminated = lost(f.Pod, old)
		case old != nil && old.State.Terminated != nil && old.ContainerID == st.ContainerID:
			st.State.Terminated = old.State.Terminated // it was lost before
		default:
			st.State.Waiting = waiting(c, k, initDone)
		}
	}
	st.Started = &started
	if prev := f.Runtime.Previous(c.Name); prev != nil && prev.State == runtime.StateExited {
		st.LastTerminationState.Terminated = terminated(prev)
	} else if old != nil {
		inherit(&st, old)
	}
	if reason, ok := r.Reasons[c.Name]; ok && cs.State != runtime.StateRunning && !r.Ended && !f.Terminating &&
		comesBack(f, c, cs, k) {
		if st.State.Terminated != nil {
			st.LastTerminationState.Terminated = st.State.Terminated
		}
		st.State = corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason.Reason, Message: reason.Message}}
	}
	return st
}

// inherit takes over, from the last report, the end of an earlier container that the runtime has forgotten.
func inherit(st, old *corev1.ContainerStatus) {
	switch {
	case old.ContainerID == st.ContainerID:
		st.LastTerminationState = old.LastTerminationState
		if t := st.LastTerminationState.Terminated; t != nil && t.ContainerID == st.ContainerID {
			st.LastTerminationState = corev1.ContainerState{} // it was shown as waiting for its restart
		}
	case old.State.Terminated != nil:
		st.LastTerminationState.Terminated = old.State.Terminated
	default:
		st.LastTerminationState = old.LastTerminationState
	}
}

// comesBack reports whether a container that ended is to be started again.
func comesBack(f Facts, c *corev1.Container, cs *runtime.Container, k runtime.Kind) bool {
	switch {
	case k == runtime.Ephemeral:
		return false
	case cs.State == runtime.StateUnknown:
		return restartsAfterKill(f.Pod, c)
	case cs.State != runtime.StateExited:
		return true
	case k == runtime.Init && !podspec.IsSidecar(c) && cs.ExitCode == 0:
		return false
	}
	return restarts(f.Pod, c, cs.ExitCode)
}

// forgotten returns the status of a container that the runtime does not know: it was never made, or it was removed. A
// container that ran at the last report has ended since, with an unknown exit code.
//
// While the pod ends it keeps its last status, and one that ran is lost; otherwise it waits for its start.
func forgotten(f Facts, r Report, c *corev1.Container, old *corev1.ContainerStatus, k runtime.Kind,
	initDone bool) corev1.ContainerStatus {
	started := false
	st := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Started: &started}
	describe(&st, c)
	if old != nil && old.ContainerID != "" {
		st = *old.DeepCopy()
		st.Started = &started
		switch {
		case st.State.Terminated != nil:
			return st
		case f.Terminating || r.Ended:
			if st.State.Running != nil {
				st.State = corev1.ContainerState{Terminated: lost(f.Pod, old)}
				st.Ready = false
			}
			return st
		case st.State.Running != nil:
			st.LastTerminationState = corev1.ContainerState{Terminated: lost(f.Pod, old)}
			st.State = corev1.ContainerState{}
			st.Ready = false
		}
	}
	if reason, ok := r.Reasons[c.Name]; ok {
		st.State = corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason.Reason, Message: reason.Message}}
	} else {
		st.State = corev1.ContainerState{Waiting: waiting(c, k, initDone)}
	}
	return st
}

// lost returns the end of a container that vanished from the runtime while it ran.
func lost(pod *corev1.Pod, old *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	end := &corev1.ContainerStateTerminated{ExitCode: exitKilled, Reason: "ContainerStatusUnknown",
		ContainerID: old.ContainerID, StartedAt: old.State.Running.StartedAt,
		Message: "The container could not be located when the pod was terminated"}
	if removedInPlace(pod) {
		end.Message = "The container is removed because RestartAllContainers in place"
	}
	return end
}

// waiting is the reason without a better one.
func waiting(_ *corev1.Container, k runtime.Kind, initDone bool) *corev1.ContainerStateWaiting {
	if k != runtime.Ephemeral && !initDone {
		return &corev1.ContainerStateWaiting{Reason: "PodInitializing"}
	}
	return &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
}

func terminated(c *runtime.Container) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: c.ExitCode, Reason: c.Reason, Message: c.Message,
		StartedAt: metav1.NewTime(c.StartedAt), FinishedAt: metav1.NewTime(c.FinishedAt), ContainerID: c.ID.String()}
}

func name(reported, asked string) string {
	if reported == "" {
		return asked
	}
	return reported
}

// describe adds what the status repeats from the spec: mounts and resources.
func describe(st *corev1.ContainerStatus, c *corev1.Container) {
	for _, m := range c.VolumeMounts {
		v := corev1.VolumeMountStatus{Name: m.Name, MountPath: m.MountPath, ReadOnly: m.ReadOnly}
		if m.ReadOnly {
			mode := corev1.RecursiveReadOnlyDisabled
			v.RecursiveReadOnly = &mode
		}
		st.VolumeMounts = append(st.VolumeMounts, v)
	}
	if len(c.Resources.Requests) > 0 {
		st.AllocatedResources = c.Resources.Requests.DeepCopy()
	}
	st.Resources = c.Resources.DeepCopy()
}
