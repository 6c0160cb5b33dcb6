package describe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func age(d time.Duration) string { return duration.HumanDuration(d) }

func seconds(n int64) string { return fmt.Sprintf("%ds", n) }

// writeContainers writes containers with their states; without states (nil) those of a template, at space. Upstream
// indents the names of a template's containers by one space less than a pod's, which is why space decides on the
// prefix.
func writeContainers(
	d *describer, title string, all []corev1.Container, states []corev1.ContainerStatus, space string,
) {
	if len(all) == 0 {
		// Only the list that every pod has is shown when it is empty.
		if title == "Containers" {
			d.line(0, "%s%s: <none>\n", space, title)
		}
		return
	}
	d.line(0, "%s%s:\n", space, title)
	for _, c := range all {
		var state *corev1.ContainerStatus
		for i := range states {
			if states[i].Name == c.Name {
				state = &states[i]
			}
		}
		name := " "
		if space == "" {
			name = "  "
		}
		d.line(0, "%s%s%v:\n", space, name, c.Name)
		writeContainer(d, c, state)
	}
}

func writeContainer(d *describer, c corev1.Container, s *corev1.ContainerStatus) {
	if s != nil {
		d.line(2, "Container ID:\t%s\n", s.ContainerID)
	}
	d.line(2, "Image:\t%s\n", c.Image)
	if s != nil {
		d.line(2, "Image ID:\t%s\n", s.ImageID)
	}
	ports, hosts := portLists(c.Ports)
	plural := ""
	if strings.Contains(ports, ",") {
		plural = "s"
	}
	d.line(2, "Port%s:\t%s\n", plural, ports)
	d.line(2, "Host Port%s:\t%s\n", plural, hosts)
	writeList(d.writer, "Command", c.Command)
	writeList(d.writer, "Args", c.Args)
	if s != nil {
		writeState(d.writer, "State", s.State)
		if s.LastTerminationState.Terminated != nil {
			writeState(d.writer, "Last State", s.LastTerminationState)
		}
		d.line(2, "Ready:\t%s\n", truth(s.Ready))
		d.line(2, "Restart Count:\t%d\n", s.RestartCount)
	}
	writeQuantities(d.writer, 2, "Limits", c.Resources.Limits)
	writeQuantities(d.writer, 2, "Requests", c.Resources.Requests)
	writeProbe(d.writer, "Liveness", c.LivenessProbe)
	writeProbe(d.writer, "Readiness", c.ReadinessProbe)
	writeProbe(d.writer, "Startup", c.StartupProbe)
	writeEnvFrom(d.writer, c.EnvFrom)
	writeEnv(d, &c)
	writeMounts(d.writer, c.VolumeMounts)
	writeDevices(d.writer, &c)
}

func truth(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

func portLists(ports []corev1.ContainerPort) (string, string) {
	if len(ports) == 0 {
		return "<none>", "<none>"
	}
	var own, host []string
	for _, p := range ports {
		name := ""
		if p.Name != "" {
			name = " (" + p.Name + ")"
		}
		own = append(own, fmt.Sprintf("%d/%s%s", p.ContainerPort, p.Protocol, name))
		host = append(host, fmt.Sprintf("%d/%s%s", p.HostPort, p.Protocol, name))
	}
	return strings.Join(own, ", "), strings.Join(host, ", ")
}

func writeList(w *writer, title string, values []string) {
	if len(values) == 0 {
		return
	}
	w.line(2, "%s:\n", title)
	for _, v := range values {
		for _, l := range strings.Split(v, "\n") {
			w.line(3, "%s\n", l)
		}
	}
}

// A container without a state counts as waiting, as the API documents.
func writeState(w *writer, title string, s corev1.ContainerState) {
	switch {
	case s.Running != nil:
		w.line(2, "%s:\tRunning\n", title)
		w.line(3, "Started:\t%v\n", when(s.Running.StartedAt))
	case s.Terminated != nil:
		t := s.Terminated
		w.line(2, "%s:\tTerminated\n", title)
		if t.Reason != "" {
			w.line(3, "Reason:\t%s\n", t.Reason)
		}
		if t.Message != "" {
			w.line(3, "Message:\t%s\n", t.Message)
		}
		w.line(3, "Exit Code:\t%d\n", t.ExitCode)
		if t.Signal > 0 {
			w.line(3, "Signal:\t%d\n", t.Signal)
		}
		w.line(3, "Started:\t%s\n", when(t.StartedAt))
		w.line(3, "Finished:\t%s\n", when(t.FinishedAt))
	default:
		w.line(2, "%s:\tWaiting\n", title)
		if s.Waiting != nil && s.Waiting.Reason != "" {
			w.line(3, "Reason:\t%s\n", s.Waiting.Reason)
		}
	}
}

func writeQuantities(w *writer, indent int, title string, l corev1.ResourceList) {
	if len(l) == 0 {
		return
	}
	names := map[string]string{}
	for k, q := range l {
		names[string(k)] = q.String()
	}
	w.line(indent, "%s:\n", title)
	for _, k := range keys(names) {
		w.line(indent+1, "%s:\t%s\n", k, names[k])
	}
}

func writeProbe(w *writer, title string, p *corev1.Probe) {
	if p == nil {
		return
	}
	attrs := fmt.Sprintf("delay=%ds timeout=%ds period=%ds successThreshold=%d failureThreshold=%d",
		p.InitialDelaySeconds, p.TimeoutSeconds, p.PeriodSeconds, p.SuccessThreshold, p.FailureThreshold)
	what := "unknown"
	switch {
	case p.Exec != nil:
		what = fmt.Sprintf("exec %v", p.Exec.Command)
	case p.HTTPGet != nil:
		h := p.HTTPGet
		what = fmt.Sprintf("http-get %s://%s:%s%s", strings.ToLower(string(h.Scheme)), h.Host, portText(h.Port), h.Path)
	case p.TCPSocket != nil:
		what = fmt.Sprintf("tcp-socket %s:%s", p.TCPSocket.Host, portText(p.TCPSocket.Port))
	case p.GRPC != nil:
		service := ""
		if p.GRPC.Service != nil {
			service = *p.GRPC.Service
		}
		what = fmt.Sprintf("grpc <pod>:%d %s", p.GRPC.Port, service)
	}
	w.line(2, "%s:\t%s %s\n", title, what, attrs)
}

func portText(p intstr.IntOrString) string { return p.String() }

func writeMounts(w *writer, all []corev1.VolumeMount) {
	if len(all) == 0 {
		w.line(2, "Mounts:\t<none>\n")
		return
	}
	w.line(2, "Mounts:\n")
	// The object belongs to the caller.
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	for _, m := range all {
		flags := "rw"
		if m.ReadOnly {
			flags = "ro"
		}
		if m.SubPath != "" {
			flags += fmt.Sprintf(",path=%q", m.SubPath)
		}
		w.line(3, "%s from %s (%s)\n", m.MountPath, m.Name, flags)
	}
}

// writeDevices writes the block devices by path. Without mounts upstream says <none> first, and so does this.
func writeDevices(w *writer, c *corev1.Container) {
	if len(c.VolumeDevices) == 0 {
		return
	}
	none := ""
	if len(c.VolumeMounts) == 0 {
		none = "\t<none>"
	}
	w.line(2, "Devices:%s\n", none)
	all := slices.Clone(c.VolumeDevices)
	slices.SortStableFunc(all, func(a, b corev1.VolumeDevice) int {
		return strings.Compare(a.DevicePath, b.DevicePath)
	})
	for _, v := range all {
		w.line(3, "%s from %s\n", v.DevicePath, v.Name)
	}
}
