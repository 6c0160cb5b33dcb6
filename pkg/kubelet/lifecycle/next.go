package lifecycle

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/podspec"
	"bonsai/pkg/kubelet/runtime"
)

// Plan is what to do next, in the order of the fields: kill the pod or some containers, make a sandbox, resize
// containers, remove and start containers one after another. If Done returns true, there is nothing to do until
// something changes or Wake comes. KillPod and RestartAll exclude what follows them; the next round plans that.
type Plan struct {
	// KillPod ends all containers and the sandboxes; with NewSandbox a new life begins then.
	KillPod bool
	// RestartAll ends and removes all containers at once, except for ephemeral ones; the sandbox stays.
	RestartAll bool
	// NewSandbox makes a sandbox with that Attempt.
	NewSandbox bool
	Attempt    uint32
	// Kill ends single containers.
	Kill []Kill
	// ResizePod gives the pod's own cgroup other values: more before the containers are given theirs, less after them.
	ResizePod bool
	// Updates give containers other resources while they run.
	Updates []Update
	// Remove lists containers that were made and never ran, because the kubelet or the runtime died in between. For
	// each, Start has a container that takes its place and its attempt.
	Remove []*runtime.Container
	// Start starts containers in order; those of one kind only: the init containers first, one at a time.
	Start []Start
	// Wait names the containers whose start is held back, and until when.
	Wait map[string]time.Time
	// Wake is the earliest time of Wait, zero if there is none.
	Wake time.Time
}

// exitKilled is the exit code of a container that ended by SIGKILL.
const exitKilled = 137

// Done reports whether there is nothing to do now. Remove is not looked at: it never comes without Start.
func (p Plan) Done() bool {
	return !p.KillPod && !p.RestartAll && !p.NewSandbox && len(p.Kill) == 0 && !p.ResizePod && len(p.Updates) == 0 &&
		len(p.Start) == 0
}

// Kill is one container to end.
type Kill struct {
	Container *corev1.Container
	Status    *runtime.Container
	// Message is the text of the Killing event, empty for the usual one.
	Message string
	// Reason is why.
	Reason killReason
}

// killReason is why a single container is killed. It chooses the grace period: a probe may have its own.
type killReason int

// The reasons to end a single container.
const (
	killUnknown killReason = iota
	killChanged
	KillLiveness
	KillStartup
	KillResize
)

// Start is one container to start.
type Start struct {
	Container *corev1.Container
	// Attempt is the new container's restart count.
	Attempt int
	// Kind is what the container is in its pod.
	Kind runtime.Kind
}

// Next computes the actions for a pod that is to run. The order of the questions matters: a pod that is ending needs no
// sandbox, a pod without a sandbox has no containers to compare, and a restart of all containers makes any other plan
// obsolete. If no container is left that runs or will run, the pod is killed, which ends its sandbox.
//
// The cases in order:
//
//   - The pod is ending: kill what runs.
//   - It needs a sandbox: end the old life, begin a new one, both or neither (newLife).
//   - A container's exit restarts all: RestartAll alone.
//   - Init containers in order; a failure of one for good ends the pod.
//   - Regular containers, once the init containers have done their work. If none is left the pod ends.
//   - Resizes of containers that stay.
func Next(f Facts) Plan {
	if f.Terminating || f.Pod.DeletionTimestamp != nil {
		return Plan{KillPod: f.Runtime.Running() || f.Runtime.SandboxReady()}
	}
	if create, attempt := needSandbox(f); create {
		return newLife(f, attempt)
	}
	if len(RestartsAll(f)) > 0 {
		return Plan{RestartAll: true}
	}
	p := &planner{Facts: f, sandbox: f.Runtime.Sandbox().ID, plan: Plan{Wait: map[string]time.Time{}}}
	// First, and whatever the others do: they are for looking at a pod that does not start.
	p.ephemeral()
	done, failed := p.initContainers()
	if failed {
		return Plan{KillPod: f.Runtime.Running() || f.Runtime.SandboxReady()}
	}
	keep := true
	if done {
		keep = p.regular()
	}
	if !keep {
		return Plan{KillPod: f.Runtime.Running() || f.Runtime.SandboxReady()}
	}
	p.resize()
	for _, t := range p.plan.Wait {
		if p.plan.Wake.IsZero() || t.Before(p.plan.Wake) {
			p.plan.Wake = t
		}
	}
	return p.plan
}

// needSandbox reports whether the pod needs a new sandbox, and its attempt: there is none, it is not ready, its network
// changed, it has no address, or more than one is ready at a time.
//
// Two ready sandboxes can be left by a kubelet that died while it made one.
func needSandbox(f Facts) (bool, uint32) {
	s := f.Runtime.Sandbox()
	switch {
	case s == nil:
		return true, 0
	case !s.Ready, s.HostNetwork != f.Pod.Spec.HostNetwork, !s.HostNetwork && len(s.IPs) == 0:
		return true, s.Attempt + 1
	}
	ready := 0
	for _, x := range f.Runtime.Sandboxes {
		if x.Ready {
			ready++
		}
	}
	return ready > 1, s.Attempt + 1
}

// newLife begins with a new sandbox unless nothing is left to run in it.
func newLife(f Facts, attempt uint32) Plan {
	p := Plan{KillPod: len(f.Runtime.Sandboxes) > 0 && (f.Runtime.Running() || f.Runtime.SandboxReady())}
	if anyLeft(f) {
		p.NewSandbox, p.Attempt = true, attempt
	}
	return p
}

// anyLeft reports whether a pod without a sandbox has a container left to run: one that never began, or one that is
// restarted after its end. What the runtime has forgotten, after a reboot or with its state, is taken from the status.
//
// A restart of the machine must not run a finished Job's pod again: that is why the status is asked.
func anyLeft(f Facts) bool {
	begun, left := false, false
	for i := range f.Pod.Spec.Containers {
		c := &f.Pod.Spec.Containers[i]
		exit, ended := past(f, c.Name)
		begun = begun || ended
		left = left || !ended || restarts(f.Pod, c, exit)
	}
	if begun || !left {
		return left
	}
	for i := range f.Pod.Spec.InitContainers {
		c := &f.Pod.Spec.InitContainers[i]
		if exit, ended := past(f, c.Name); ended && exit != 0 && !restarts(f.Pod, c, exit) {
			return false
		}
	}
	return true
}

// past returns how the newest container of that name ended, or will end with its sandbox; ended is false if none has
// begun. A container that ran when it was last reported, and that the runtime has forgotten, was killed.
func past(f Facts, name string) (exit int32, ended bool) {
	if s := f.Runtime.Container(name); s != nil {
		switch s.State {
		case runtime.StateExited:
			return s.ExitCode, true
		case runtime.StateCreated:
			return 0, false
		}
		return exitKilled, true
	}
	for _, list := range [][]corev1.ContainerStatus{f.Pod.Status.ContainerStatuses,
		f.Pod.Status.InitContainerStatuses} {
		s := find(list, name)
		if s == nil || s.ContainerID == "" {
			continue
		}
		end := s.State.Terminated
		switch {
		case s.State.Running != nil:
			end = lost(f.Pod, s)
		case end == nil:
			end = s.LastTerminationState.Terminated
		}
		if end != nil && !formerLife(f.Pod, end) {
			return end.ExitCode, true
		}
	}
	return 0, false
}

// planner collects a Plan for a pod whose sandbox is good. It reads Facts; only plan changes.
type planner struct {
	Facts
	sandbox string
	plan    Plan
}

// current returns the newest container of that name in the present sandbox. Containers of former sandboxes are history.
func (p *planner) current(name string) *runtime.Container {
	s := p.Runtime.Container(name)
	if s == nil || s.SandboxID != p.sandbox {
		return nil
	}
	return s
}

// attempt is the restart count of the next container of that name. A container that was made and never ran is replaced
// under its own count; what the runtime has forgotten continues from the status.
//
// It must never go back: the restart count is part of the container's name in the runtime and of the path of its log.
func (p *planner) attempt(name string) int {
	if s := p.Runtime.Container(name); s != nil {
		if s.State == runtime.StateCreated && !s.Stuck {
			return s.Attempt
		}
		return s.Attempt + 1
	}
	for _, list := range [][]corev1.ContainerStatus{p.Pod.Status.ContainerStatuses,
		p.Pod.Status.InitContainerStatuses} {
		for _, s := range list {
			if s.Name == name && s.ContainerID != "" {
				return int(s.RestartCount) + 1
			}
		}
	}
	return 0
}

// start adds a container to the plan unless its back-off holds it back; then the plan has the time to wake up.
func (p *planner) start(c *corev1.Container, k runtime.Kind) {
	// Wait and not Start: the worker wakes at the earliest of these times.
	if until, ok := p.BackOff[c.Name]; ok && until.After(p.Now) {
		p.plan.Wait[c.Name] = until
		return
	}
	if s := p.Runtime.Container(c.Name); s != nil && s.State == runtime.StateCreated && !s.Stuck {
		p.plan.Remove = append(p.plan.Remove, s)
	}
	p.plan.Start = append(p.plan.Start, Start{Container: c, Attempt: p.attempt(c.Name), Kind: k})
}

func (p *planner) kill(c *corev1.Container, s *runtime.Container, why killReason, message string) {
	p.plan.Kill = append(p.plan.Kill, Kill{Container: c, Status: s, Reason: why, Message: message})
}

// ephemeral starts ephemeral containers, each once: they are never restarted, and wait for nothing.
//
// They are KEP-277. One that ended stays in the status.
func (p *planner) ephemeral() {
	for i := range p.Pod.Spec.EphemeralContainers {
		c := (*corev1.Container)(&p.Pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		if s := p.Runtime.Container(c.Name); s == nil || s.State == runtime.StateCreated {
			p.start(c, runtime.Ephemeral)
		}
	}
}

// initContainers starts the next init container if one is due. done: the regular containers may run; failed: the pod
// has failed. Once a regular container was made, only sidecars are looked after: the others' work is done, even if the
// runtime has forgotten them.
//
// Only one init container runs at a time. A sidecar (KEP-753) counts as done when it has started up, and is looked
// after for the rest of the pod's life.
func (p *planner) initContainers() (done, failed bool) {
	begun := p.regularBegun()
	for i := range p.Pod.Spec.InitContainers {
		c := &p.Pod.Spec.InitContainers[i]
		s := p.current(c.Name)
		if podspec.IsSidecar(c) {
			ready := p.sidecar(c, s)
			if !ready && !begun {
				return false, false
			}
			continue
		}
		// Also one that the runtime has removed since must not run again.
		if begun {
			continue
		}
		switch {
		case s == nil, s.State == runtime.StateCreated:
			p.start(c, runtime.Init)
			return false, false
		case s.State == runtime.StateExited && s.ExitCode == 0:
			continue
		case s.State == runtime.StateExited:
			if !restarts(p.Pod, c, s.ExitCode) {
				return false, true
			}
			p.start(c, runtime.Init)
			return false, false
		// Its probes may still want it gone; the next round sees its exit.
		case s.State == runtime.StateRunning:
			if v, msg := p.unhealthy(c, s); v != 0 {
				p.kill(c, s, v, msg)
			}
			return false, false
		}
		p.kill(c, s, killUnknown, "")
		if restartsAfterKill(p.Pod, c) {
			p.start(c, runtime.Init)
		}
		return false, false
	}
	return true, false
}

// regularBegun reports whether a regular container was ever made in this sandbox: the init containers are over then.
func (p *planner) regularBegun() bool {
	for i := range p.Pod.Spec.Containers {
		if p.current(p.Pod.Spec.Containers[i].Name) != nil {
			return true
		}
	}
	return false
}

// sidecar keeps a restartable init container running and reports whether it has started up.
//
// It restarts whatever its exit code, because its policy is Always.
func (p *planner) sidecar(c *corev1.Container, s *runtime.Container) bool {
	switch {
	case s == nil || s.State == runtime.StateExited || s.State == runtime.StateCreated:
		p.start(c, runtime.Init)
		return false
	case s.State == runtime.StateRunning:
		if v, msg := p.unhealthy(c, s); v != 0 {
			p.kill(c, s, v, msg)
			p.start(c, runtime.Init)
			return false
		}
		return hasStarted(p.Facts, c, s)
	}
	p.kill(c, s, killUnknown, "")
	p.start(c, runtime.Init)
	return false
}

// unhealthy returns why a running container must be replaced, with the text of its event; 0 if it need not. A changed
// definition comes first: then the probes' results are about a container that goes anyway.
func (p *planner) unhealthy(c *corev1.Container, s *runtime.Container) (killReason, string) {
	probes := p.Probes[s.ID.String()]
	switch {
	case s.Hash != "" && s.Hash != Hash(c):
		return killChanged, fmt.Sprintf("Container %s definition changed", c.Name)
	case probes.Liveness == runtime.ProbeFailure:
		return KillLiveness, fmt.Sprintf("Container %s failed liveness probe", c.Name)
	case probes.Startup == runtime.ProbeFailure:
		return KillStartup, fmt.Sprintf("Container %s failed startup probe", c.Name)
	case restartsForResize(p.Facts, c):
		return KillResize, fmt.Sprintf("Container %s resize requires restart", c.Name)
	}
	return 0, ""
}

// regular plans the regular containers and reports whether the pod has any left that runs or will run.
//
// By the state of the newest container of each name:
//
//   - none: start, unless the status says that it ended for good before the runtime forgot it
//   - exited: start again if the policy says so
//   - running: keep, or kill for a changed definition, a failed probe or a resize, and start again in the same plan
//   - created: it never ran; start its successor
//   - unknown: kill first, because it may run after all; then start again if the policy says so
//
// While something is killed the pod is kept: the next round sees how it ended.
func (p *planner) regular() (keep bool) {
	for i := range p.Pod.Spec.Containers {
		c := &p.Pod.Spec.Containers[i]
		s := p.Runtime.Container(c.Name)
		switch {
		case s == nil:
			if exit, ended := past(p.Facts, c.Name); !ended || restarts(p.Pod, c, exit) {
				keep = true
				p.start(c, runtime.Regular)
			}
		case s.State == runtime.StateExited:
			if restarts(p.Pod, c, s.ExitCode) {
				keep = true
				p.start(c, runtime.Regular)
			}
		case s.State == runtime.StateRunning:
			why, msg := p.unhealthy(c, s)
			if why == 0 {
				keep = true
				continue
			}
			restart := why == killChanged || why == KillResize || restartsAfterKill(p.Pod, c)
			if restart {
				keep = true
				if why != KillResize {
					msg += ", will be restarted"
				}
				p.start(c, runtime.Regular)
			}
			p.kill(c, s, why, msg)
		case s.State == runtime.StateCreated:
			keep = true
			p.start(c, runtime.Regular)
		case restartsAfterKill(p.Pod, c):
			keep = true
			p.kill(c, s, killUnknown, fmt.Sprintf("Container is in %q state, try killing it before restart", s.State))
			p.start(c, runtime.Regular)
		default:
			p.kill(c, s, killUnknown, "")
		}
	}
	return keep || len(p.plan.Kill) > 0
}

// restartsAfterKill reports whether a container comes back that is killed for its probe or its unknown state: for the
// restart policy that is a failure.
func restartsAfterKill(pod *corev1.Pod, c *corev1.Container) bool {
	return restarts(pod, c, exitKilled)
}
