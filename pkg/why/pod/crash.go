package pod

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"bonsai/pkg/why"
)

// crashing explains a container that keeps ending.
func (q *inquiry) crashing(ctx context.Context, c *corev1.Container, s *corev1.ContainerStatus, what string) why.Cause {
	cause := why.Cause{Code: "CrashLoopBackOff",
		Text: fmt.Sprintf("%s %s ends again and again; it has been restarted %s, and the kubelet waits longer "+
			"before each start.", capital(what), c.Name, times(s.RestartCount)),
		Evidence: []why.Evidence{why.See(q.self, statusField(what, c.Name, "restartCount"),
			fmt.Sprint(s.RestartCount))}}
	t := s.LastTerminationState.Terminated
	if t == nil {
		return cause
	}
	last := q.ended(ctx, c, t, what, s)
	last.Text += fmt.Sprintf(" The kubelet has restarted it %s and waits before the next start.", times(s.RestartCount))
	last.Evidence = append(last.Evidence, cause.Evidence...)
	return last
}

// ended explains the end of a container.
func (q *inquiry) ended(ctx context.Context, c *corev1.Container, t *corev1.ContainerStateTerminated, what string,
	s *corev1.ContainerStatus,
) why.Cause {
	field := "state.terminated"
	if s.State.Terminated == nil {
		field = "lastState.terminated"
	}
	name := fmt.Sprintf("%s %s", capital(what), c.Name)
	cause := why.Cause{Code: "ContainerFailed", Evidence: []why.Evidence{
		why.See(q.self, statusField(what, c.Name, field), fmt.Sprintf("exit code %d, reason %s", t.ExitCode, t.Reason),
			t.FinishedAt)}}
	logs := why.Fix{Text: "Read what it said before it ended.", Command: why.Command("kubectl logs %s%s -c %s%s",
		q.pod.Name, q.self.Flag(), c.Name, previous(s))}
	ran := ""
	if !t.StartedAt.IsZero() && t.FinishedAt.After(t.StartedAt.Time) {
		ran = " after " + why.Span(t.FinishedAt.Sub(t.StartedAt.Time))
	}
	killer := q.killer(c, t)
	switch {
	case t.Reason == "OOMKilled":
		return q.outOfMemory(c, t, what, cause)
	case q.hookFailed(c, t) != nil:
		e := q.hookFailed(c, t)
		cause.Code = "PostStartHookFailed"
		cause.Text = fmt.Sprintf("The postStart hook of %s %s fails, and the kubelet kills the container for it: %s.", what,
			c.Name, why.Quote(e.Message))
		cause.Evidence = append(cause.Evidence, why.SeeEvent(e))
		return cause
	case neverStarted(t):
		if failure, ok := q.startFailure(ctx, c, what, t.Message); ok {
			failure.Evidence = append(cause.Evidence, failure.Evidence...)
			return failure
		}
		cause.Code, cause.Text = "StartError", fmt.Sprintf("%s cannot be started: %s.", name, why.Quote(t.Message))
		return cause
	case killer != nil:
		cause.Code = "KilledByProbe"
		cause.Text = fmt.Sprintf("The kubelet killed %s %s%s: %s.", what, c.Name, ran, why.Quote(killer.Message))
		cause.Evidence = append(cause.Evidence, why.SeeEvent(killer))
		cause.Because = q.probeFailures(ctx, c, "Liveness", "Startup")
		const start = time.Minute
		mended := slices.ContainsFunc(cause.Because, func(b why.Cause) bool { return len(b.Fixes) > 0 })
		if !mended && !t.StartedAt.IsZero() && t.FinishedAt.Sub(t.StartedAt.Time) < start && c.StartupProbe == nil {
			cause.Fixes = append(cause.Fixes, why.Fix{Text: "If the program needs longer to start, give it a " +
				"startupProbe, or its livenessProbe a larger initialDelaySeconds or failureThreshold."})
		}
		return cause
	case t.ExitCode == 0:
		cause.Code, cause.Text = "ContainerCompleted", fmt.Sprintf("%s ends with success%s, but the pod's "+
			"restartPolicy is %s: its program is expected to run forever.", name, ran, q.pod.Spec.RestartPolicy)
		cause.Fixes = []why.Fix{{Text: "Give the container a command that does not end, or make it a Job."}, logs}
		return cause
	case t.ExitCode == 137:
		cause.Code, cause.Text = "Killed", name+" was killed by signal 9"+ran+", and nothing in its status says by "+
			"whom."
		if limit := c.Resources.Limits.Memory(); !limit.IsZero() {
			cause.Text += fmt.Sprintf(" Its memory limit is %s: the kernel kills containers at their limit like "+
				"this, and runtimes do not always say so.", limit)
			cause.Evidence = append(cause.Evidence, why.See(q.self, specField(what, c.Name, "resources.limits.memory"),
				limit.String()))
			cause.Fixes = append(cause.Fixes, q.raise(c, limit))
		} else {
			cause.Text += " It has no memory limit: the node may have run out of memory, or a stop took longer than " +
				"the grace period."
		}
	case t.ExitCode == 139:
		cause.Text = name + " crashed with a segmentation fault (exit code 139)" + ran + "."
	case t.ExitCode == 143:
		cause.Text = name + " was ended by SIGTERM (exit code 143)" + ran + "."
	case t.ExitCode == 126:
		cause.Text = name + " ended with exit code 126: its command is not executable."
	case t.ExitCode == 127:
		cause.Text = name + " ended with exit code 127: a command in it was not found."
	default:
		cause.Text = fmt.Sprintf("%s ended with exit code %d%s.", name, t.ExitCode, ran)
	}
	p := q.program(ctx, c, what, s.State.Terminated == nil, t.Message)
	if words := p.words(); words != "" {
		cause.Text += " It said: " + why.Quote(words) + "."
		cause.Evidence = append(cause.Evidence, p.evidence()...)
	}
	cause.Fixes = append(cause.Fixes, logs)
	cause.Because = append(cause.Because, p.because(ctx, explainEnvironment(ctx, q, c, t, what))...)
	return cause
}

// neverStarted reports whether a container ended because its runtime could not start its program.
func neverStarted(t *corev1.ContainerStateTerminated) bool {
	_, missing := missingProgram(t.Message)
	return missing || t.Reason == "StartError" || t.Reason == "ContainerCannotRun"
}

// hookFailed returns the event by which the kubelet said that the postStart hook of the container that ended as t says
// had failed, nil if it did not.
func (q *inquiry) hookFailed(c *corev1.Container, t *corev1.ContainerStateTerminated) *corev1.Event {
	if c.Lifecycle == nil || c.Lifecycle.PostStart == nil {
		return nil
	}
	if e := q.event("FailedPostStartHook"); e != nil && !why.LastSeen(e).Before(t.StartedAt.Time) {
		return e
	}
	return nil
}

// killer returns the event by which the kubelet said that it killed the container that ended as t says, nil if it did
// not.
func (q *inquiry) killer(c *corev1.Container, t *corev1.ContainerStateTerminated) *corev1.Event {
	if c.LivenessProbe == nil && c.StartupProbe == nil {
		return nil
	}
	// A kill by a probe shows as an event before the end, at most a grace period earlier.
	for _, e := range q.events {
		if e.Reason != "Killing" || !containsAll(e.Message, c.Name, "failed", "probe") {
			continue
		}
		if t.FinishedAt.IsZero() || !why.LastSeen(e).Before(t.StartedAt.Time) {
			return e
		}
	}
	return nil
}

// outOfMemory explains a container that the kernel killed: by whose limit.
func (q *inquiry) outOfMemory(c *corev1.Container, t *corev1.ContainerStateTerminated, what string, cause why.Cause,
) why.Cause {
	cause.Code = "OOMKilled"
	name := fmt.Sprintf("%s %s", capital(what), c.Name)
	limit := c.Resources.Limits.Memory()
	switch {
	case !limit.IsZero():
		cause.Text = fmt.Sprintf("%s was killed because it used more memory than its own limit of %s.", name, limit)
		cause.Evidence = append(cause.Evidence, why.See(q.self, specField(what, c.Name, "resources.limits.memory"),
			limit.String()))
		cause.Fixes = []why.Fix{q.raise(c, limit)}
	case q.pod.Spec.Resources != nil && !q.pod.Spec.Resources.Limits.Memory().IsZero():
		pod := q.pod.Spec.Resources.Limits.Memory()
		cause.Text = fmt.Sprintf("%s was killed because the containers of the pod together used more memory than "+
			"the pod's limit of %s.", name, pod)
		cause.Evidence = append(cause.Evidence, why.See(q.self, ".spec.resources.limits.memory", pod.String()))
		cause.Fixes = []why.Fix{{Text: "Raise the pod's memory limit, or give its containers limits of their own."}}
	default:
		cause.Text = fmt.Sprintf("%s was killed because node %s ran out of memory. It has no memory limit, so that "+
			"no limit of its own was the reason.", name, q.pod.Spec.NodeName)
		cause.Fixes = []why.Fix{{Text: "Give the container a memory request of what it needs, so that the scheduler " +
			"keeps that much free."}}
	}
	inMemory(q, c, &cause)
	if !t.FinishedAt.IsZero() {
		cause.Text += fmt.Sprintf(" This was %s ago.", q.since(t.FinishedAt.Time))
	}
	return cause
}

// inMemory adds to a cause the volumes of a container whose files count towards its memory. What is in them stays when
// the container ends: its next start finds it there.
func inMemory(q *inquiry, c *corev1.Container, cause *why.Cause) {
	for _, v := range q.pod.Spec.Volumes {
		mounted := slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })
		if mounted && v.EmptyDir != nil && v.EmptyDir.Medium == corev1.StorageMediumMemory {
			cause.Text += fmt.Sprintf(" The files in its volume %s count, too: that emptyDir is in memory.", v.Name)
			cause.Evidence = append(cause.Evidence, why.See(q.self, fmt.Sprintf(
				`.spec.volumes[?(@.name=="%s")].emptyDir.medium`, v.Name), string(v.EmptyDir.Medium)))
		}
	}
}

// raise is the change to a limit that helps next: nobody knows how much the program needs, so it is doubled.
func (q *inquiry) raise(c *corev1.Container, limit *resource.Quantity) why.Fix {
	twice := limit.DeepCopy()
	twice.Add(*limit)
	f := why.Fix{Text: fmt.Sprintf("Raise the memory limit of container %s, for example to %s.", c.Name,
		twice.String())}
	target := q.self
	if owner := q.workload(); owner != nil {
		target = *owner
	}
	if slices.Contains(withTemplates, target.Kind) {
		f.Command = why.Command("kubectl set resources %s%s -c %s --limits=memory=%s", target.Arg(), target.Flag(),
			c.Name,
			twice.String())
	}
	return f
}

// restartedOnce is the code of a container that failed once and has run well since.
const restartedOnce = "RestartedOnce"

// restarted explains a pod that is ready now, but had a container end a short while ago.
func (q *inquiry) restarted(ctx context.Context) (causes []why.Cause) {
	const recently = 15 * time.Minute
	for i := range q.pod.Spec.Containers {
		c := &q.pod.Spec.Containers[i]
		s := status(q.pod.Status.ContainerStatuses, c.Name)
		if s == nil || s.LastTerminationState.Terminated == nil || s.RestartCount == 0 {
			continue
		}
		t := s.LastTerminationState.Terminated
		if q.Now.Sub(t.FinishedAt.Time) > recently {
			continue
		}
		cause := q.ended(ctx, c, t, "container", s)
		cause.Text += fmt.Sprintf(" It has been restarted %s.", times(s.RestartCount))
		// What the kubelet kills for a probe, and what the kernel kills, ends again in the same way. Others may, until
		// the container has run for much longer than before; a status may be some seconds old.
		const least = 10 * time.Second
		if s.RestartCount == 1 && cause.Code == "ContainerFailed" && s.State.Running != nil &&
			q.Now.Sub(s.State.Running.StartedAt.Time) > t.FinishedAt.Sub(t.StartedAt.Time)+least {
			cause = why.Cause{Code: restartedOnce, Text: cause.Text + " It has been well since.",
				Evidence: cause.Evidence,
				Fixes:    cause.Fixes}
		}
		causes = append(causes, cause)
	}
	return causes
}

func previous(s *corev1.ContainerStatus) why.CommandLine {
	if s.State.Terminated == nil && s.RestartCount > 0 {
		return " --previous"
	}
	return ""
}
