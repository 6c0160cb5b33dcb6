package pod

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/api/podspec"
	"bonsai/pkg/why"
)

// container explains a container that is not as it should be: one that waits, one that keeps ending, and one that runs
// without being ready. what is "container" or "init container".
func (q *inquiry) container(ctx context.Context, c *corev1.Container, s *corev1.ContainerStatus,
	what string) []why.Cause {
	init := what == "init container" && !podspec.IsSidecar(c)
	switch {
	case s.State.Waiting != nil:
		return q.waiting(ctx, c, s, what)
	case s.State.Terminated != nil && s.State.Terminated.ExitCode != 0:
		return []why.Cause{q.ended(ctx, c, s.State.Terminated, what, s)}
	case s.State.Terminated != nil && !init && q.pod.Spec.RestartPolicy != corev1.RestartPolicyAlways:
		return nil // it has done its work
	case s.State.Terminated != nil && !init:
		return []why.Cause{q.ended(ctx, c, s.State.Terminated, what, s)}
	case s.State.Running != nil && init:
		return []why.Cause{q.runningInit(ctx, c, s)}
	case s.State.Running != nil && !s.Ready:
		return q.unready(ctx, c, s, what)
	}
	return nil
}

// runningInit explains a pod that waits for an init container to end.
func (q *inquiry) runningInit(ctx context.Context, c *corev1.Container, s *corev1.ContainerStatus) why.Cause {
	cause := why.Cause{Code: "InitContainerRunning",
		Text: fmt.Sprintf("Init container %s has been running for %s; the containers after it start when it has "+
			"ended with success.", c.Name, q.since(s.State.Running.StartedAt.Time)),
		Evidence: []why.Evidence{why.See(q.self, statusField("init container", c.Name, "state.running.startedAt"),
			s.State.Running.StartedAt.UTC().Format("2006-01-02T15:04:05Z"), s.State.Running.StartedAt)},
		Fixes: []why.Fix{{Text: "Look at what it waits for.",
			Command: why.Command("kubectl logs %s%s -c %s", q.pod.Name, q.self.Flag(), c.Name)}}}
	p := q.program(ctx, c, "init container", false, "")
	if words := p.words(); words != "" {
		cause.Text += " It said last: " + why.Quote(words) + "."
		cause.Evidence = append(cause.Evidence, p.evidence()...)
	}
	cause.Because = p.because(ctx, nil)
	if s.RestartCount > 0 && s.LastTerminationState.Terminated != nil {
		last := q.ended(ctx, c, s.LastTerminationState.Terminated, "init container", s)
		cause.Text += fmt.Sprintf(" It has been restarted %s.", times(s.RestartCount))
		cause.Because = append([]why.Cause{last}, cause.Because...)
	}
	return cause
}

// waiting explains a container whose status says that it waits.
func (q *inquiry) waiting(ctx context.Context, c *corev1.Container, s *corev1.ContainerStatus,
	what string) []why.Cause {
	w := s.State.Waiting
	seen := why.See(q.self, statusField(what, c.Name, "state.waiting.reason"), w.Reason)
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable",
		"ImageInspectError", "SignatureValidationFailed":
		return []why.Cause{q.image(ctx, c, s, what)}
	case "CreateContainerConfigError":
		return q.misconfigured(ctx, c, w, what, seen)
	case "CrashLoopBackOff":
		return []why.Cause{q.crashing(ctx, c, s, what)}
	case "ContainerCreating", "PodInitializing", "":
		return nil // starting says what is missing
	}
	text := fmt.Sprintf("%s %s cannot be started (%s)", capital(what), c.Name, w.Reason)
	if w.Message != "" {
		text += ": " + why.Quote(w.Message)
	}
	cause := why.Cause{Code: w.Reason, Text: text + ".", Evidence: []why.Evidence{seen}}
	if failure, ok := q.startFailure(ctx, c, what, w.Message); ok {
		failure.Evidence = append([]why.Evidence{seen, why.See(q.self, statusField(what, c.Name,
			"state.waiting.message"), w.Message)}, failure.Evidence...)
		cause = failure
	}
	return []why.Cause{cause}
}

// missingProgram returns the program that a runtime could not find, by what runtimes say: `exec: "nope": executable
// file not found in $PATH`, `stat /bin/nope: no such file or directory`.
func missingProgram(message string) (string, bool) {
	if !strings.Contains(message, "executable file not found") && !strings.Contains(message,
		"no such file or directory") {
		return "", false
	}
	if _, after, ok := strings.Cut(message, `exec: "`); ok {
		if name, _, ok := strings.Cut(after, `"`); ok {
			return name, true
		}
	}
	return "", false
}

// statusField is the path of a field of a container's status.
func statusField(what, container, field string) string {
	list := "containerStatuses"
	if what == "init container" {
		list = "initContainerStatuses"
	}
	return fmt.Sprintf(`.status.%s[?(@.name=="%s")].%s`, list, container, field)
}

// specField is the path of a field of a container.
func specField(what, container, field string) string {
	return fmt.Sprintf(`.spec.%s[?(@.name=="%s")].%s`, listOf(what), container, field)
}

// listOf is the field of a pod's spec that has a container of that kind.
func listOf(what string) string {
	if what == "init container" {
		return "initContainers"
	}
	return "containers"
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func times(n int32) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
