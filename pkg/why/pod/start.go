package pod

import (
	"context"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/why"
)

// startFailures are what runtimes say about a container that they cannot start, and what it means. The first that
// matches counts.
var startFailures = []struct {
	code string
	all  []string // all of these words
	text string
	fix  string
}{
	{"ExecFormatError", []string{"exec format error"},
		"its program is built for another architecture than its node's, or is a script without #! in its first line",
		"Build the image for the node's architecture, or begin the script with #!."},
	{"EnvironmentTooLarge", []string{"argument list too long"},
		"its arguments and its environment together are larger than the kernel takes", ""},
	{"WorkingDir", []string{"chdir to cwd"}, "it cannot enter its working directory",
		"Set workingDir to a directory that the container's user may enter."},
	{"MountOntoFile", []string{"mount", "not a directory"},
		"a volume's directory is to be mounted where the image has a file, or a file onto a directory",
		"Mount the one file by subPath, or choose another mountPath."},
	{"MountOntoReadOnly", []string{"mount", "read-only file system"},
		"the directory for a mount cannot be made, since it lies in a read-only volume",
		"Choose a mountPath outside of read-only volumes."},
	{"MemoryLimitTooLow", []string{"memory limit too low"},
		"its memory limit is too low for the runtime to start it", "Raise the memory limit."},
	{"MemoryLimitTooLow", []string{"init was OOM-killed"},
		"its memory limit is too low for the runtime to start it", "Raise the memory limit."},
	{"NoSuchUser", []string{"unable to find user"}, "the image has no such user",
		"Set securityContext.runAsUser to a number, or a user that the image has."},
	{"NoSuchGroup", []string{"unable to find group"}, "the image has no such group",
		"Set securityContext.runAsGroup to a number."},
	{"SecurityProfile", []string{"apparmor"}, "its AppArmor profile cannot be applied on the node",
		"Load the profile into the node, or name another one."},
	{"SecurityProfile", []string{"seccomp"}, "its seccomp profile cannot be applied on the node",
		"Put the profile's file onto the node, or use RuntimeDefault."},
	{"NotExecutable", []string{"permission denied"},
		"its program is not executable for the container's user", "Let the image make the program executable for all."},
}

// startFailure explains a container that its runtime could not start, by the runtime's message; ok is false if the
// message is none that is known.
func (q *inquiry) startFailure(ctx context.Context, c *corev1.Container, what, message string) (cause why.Cause,
	ok bool) {
	name := fmt.Sprintf("%s %s", capital(what), c.Name)
	if program, missing := missingProgram(message); missing {
		return why.Cause{Code: "NoSuchProgram",
			Text:    fmt.Sprintf("%s cannot be started: the image %s has no program %s.", name, c.Image, program),
			Because: hidden(q, c, what, program)}, true
	}
	for _, f := range startFailures {
		if !containsAll(message, f.all...) {
			continue
		}
		cause := why.Cause{Code: f.code, Text: fmt.Sprintf("%s cannot be started: %s. The runtime says: %s.", name,
			f.text, why.Quote(innermost(message)))}
		if f.fix != "" {
			cause.Fixes = []why.Fix{{Text: f.fix}}
		}
		switch f.code {
		case "MemoryLimitTooLow":
			if limit := c.Resources.Limits.Memory(); !limit.IsZero() {
				cause.Evidence = append(cause.Evidence, why.See(q.self, specField(what, c.Name,
					"resources.limits.memory"), limit.String()))
				cause.Fixes = []why.Fix{q.raise(c, limit)}
			}
			inMemory(q, c, &cause)
		case "EnvironmentTooLarge":
			cause.Because = manyLinks(ctx, q)
		case "ExecFormatError":
			if n, _ := why.Get[corev1.Node](ctx, q.World, "", q.pod.Spec.NodeName); n != nil {
				cause.Evidence = append(cause.Evidence, why.See(why.ObjectOf("", "Node", n),
					".status.nodeInfo.architecture", n.Status.NodeInfo.Architecture))
			}
		case "WorkingDir":
			cause.Evidence = append(cause.Evidence, why.See(q.self, specField(what, c.Name, "workingDir"),
				c.WorkingDir))
		case "MountOntoFile", "MountOntoReadOnly":
			for _, m := range c.VolumeMounts {
				if strings.Contains(message, m.MountPath) {
					cause.Evidence = append(cause.Evidence, why.See(q.self, specField(what, c.Name, fmt.Sprintf(
						`volumeMounts[?(@.name=="%s")].mountPath`, m.Name)), m.MountPath))
				}
			}
		}
		return cause, true
	}
	return why.Cause{}, false
}

// innermost is what the last of the programs that start a container said: each wraps the message of the one below it.
func innermost(message string) string {
	const last = "unable to start container process: "
	if _, said, ok := strings.Cut(message, last); ok && said != "" {
		return said
	}
	return message
}

// hidden explains a program that is not found although the image may have it: a volume is mounted over its directory.
func hidden(q *inquiry, c *corev1.Container, what, program string) []why.Cause {
	file := program
	if !path.IsAbs(file) {
		if c.WorkingDir == "" || !strings.Contains(file, "/") {
			return nil
		}
		file = path.Join(c.WorkingDir, file)
	}
	for i := range c.VolumeMounts {
		if m := &c.VolumeMounts[i]; under(file, m.MountPath) {
			return []why.Cause{hides(q, c, what, m, program)}
		}
	}
	return nil
}

// hides explains a file that the image may have and the container does not find: a volume is mounted over its
// directory.
func hides(q *inquiry, c *corev1.Container, what string, m *corev1.VolumeMount, file string) why.Cause {
	return why.Cause{Code: "VolumeHidesFiles",
		Text: fmt.Sprintf("Volume %s is mounted at %s: what the image has there is hidden, and the volume does not "+
			"have %s.", m.Name, m.MountPath, file),
		Evidence: []why.Evidence{why.See(q.self, specField(what, c.Name, fmt.Sprintf(
			`volumeMounts[?(@.name=="%s")].mountPath`, m.Name)), m.MountPath)},
		Fixes: []why.Fix{{Text: "Mount the volume at another path, or single files of it by subPath."}}}
}

// manyLinks explains an environment that is too large by the variables for the Services of the namespace.
func manyLinks(ctx context.Context, q *inquiry) []why.Cause {
	all := links(ctx, q, metav1.Time{})
	if len(all) == 0 {
		return nil
	}
	return []why.Cause{{Code: "ServiceLink",
		Text: fmt.Sprintf("The environment has variables for each of the %s of the namespace, seven or more for each port "+
			"(enableServiceLinks), and kernels bound its size.", why.Count(len(all), "Service")),
		Evidence: []why.Evidence{why.See(q.self, ".spec.enableServiceLinks", "true")},
		Fixes:    []why.Fix{withoutLinks(q)}}}
}
