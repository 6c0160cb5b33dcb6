package pod

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/pkg/why"
)

// unready explains a container that runs and is not ready: a probe that fails, or that has not been asked yet.
func (q *inquiry) unready(ctx context.Context, c *corev1.Container, s *corev1.ContainerStatus,
	what string) []why.Cause {
	if c.StartupProbe != nil && (s.Started == nil || !*s.Started) {
		if causes := q.probeFailures(ctx, c, "Startup"); len(causes) > 0 {
			return causes
		}
	}
	if causes := q.probeFailures(ctx, c, "Readiness"); len(causes) > 0 {
		return causes
	}
	if s.RestartCount > 0 && s.LastTerminationState.Terminated != nil {
		last := q.ended(ctx, c, s.LastTerminationState.Terminated, what, s)
		last.Text += fmt.Sprintf(" It has been restarted %s, and runs for %s now.", times(s.RestartCount),
			q.since(s.State.Running.StartedAt.Time))
		return []why.Cause{last}
	}
	if p := c.ReadinessProbe; p != nil {
		return []why.Cause{{Code: "ReadinessNotYet",
			Text: fmt.Sprintf("Container %s has been running for %s, and its readiness probe has not succeeded yet.",
				c.Name, q.since(s.State.Running.StartedAt.Time)),
			Evidence: []why.Evidence{why.See(q.self, specField(what, c.Name, "readinessProbe"), probeText(p)),
				why.See(q.self, statusField(what, c.Name, "ready"), "false")}}}
	}
	return nil
}

// probeFailures explain the newest failures of a container's probes of these kinds.
func (q *inquiry) probeFailures(ctx context.Context, c *corev1.Container, kinds ...string) (causes []why.Cause) {
	for _, kind := range kinds {
		p := probe(c, kind)
		if p == nil {
			continue
		}
		for _, e := range q.events {
			if e.Reason != "Unhealthy" || !strings.HasPrefix(e.Message, kind+" probe") {
				continue
			}
			if path := e.InvolvedObject.FieldPath; path != "" && !strings.Contains(path, "{"+c.Name+"}") {
				continue // another container's
			}
			causes = append(causes, q.probeFailure(ctx, c, kind, p, e))
			break
		}
	}
	return causes
}

func (q *inquiry) probeFailure(ctx context.Context, c *corev1.Container, kind string, p *corev1.Probe,
	e *corev1.Event) why.Cause {
	cause := why.Cause{Code: kind + "ProbeFailed",
		Text: fmt.Sprintf("The %s probe of container %s (%s) fails: %s.", strings.ToLower(kind), c.Name, probeText(p),
			why.Quote(e.Message)),
		Evidence: []why.Evidence{why.SeeEvent(e),
			why.See(q.self, specField("container", c.Name, strings.ToLower(kind)+"Probe"), probeText(p))}}
	if cause.Because = q.names(ctx, e.Message); len(cause.Because) > 0 {
		return cause
	}
	port, given := probePort(p)
	switch {
	case given && port.Type == intstr.String && !named(c, port.StrVal):
		cause.Because = append(cause.Because, why.Cause{Code: "ProbePortUnknown",
			Text: fmt.Sprintf("Container %s has no port named %q. It has: %s.", c.Name, port.StrVal,
				why.And(portTexts(c))),
			Evidence: []why.Evidence{why.See(q.self, specField("container", c.Name, "ports"), why.And(portTexts(c)))}})
	case probeHost(p) != "":
		cause.Because = append(cause.Because, why.Cause{Code: "ProbeHost",
			Text: fmt.Sprintf("The probe names the host %s: the kubelet asks that address from the node, and not the pod.",
				probeHost(p)),
			Evidence: []why.Evidence{why.See(q.self, specField("container", c.Name, strings.ToLower(kind)+"Probe"),
				"host: "+probeHost(p))},
			Fixes: []why.Fix{{Text: "Remove the host from the probe; it then asks the pod's own address."}}})
	case given && strings.Contains(e.Message, "connection refused"):
		text := fmt.Sprintf("Nothing listens at port %s of the pod's address: the program uses another port, or listens at "+
			"127.0.0.1 only.", port.String())
		if port.Type == intstr.Int && len(c.Ports) > 0 && !numbered(c, port.IntVal) {
			text += fmt.Sprintf(" The container declares other ports: %s.", why.And(portTexts(c)))
			cause.Fixes = []why.Fix{movedProbe(q.workload(), c, kind, p, c.Ports[0].ContainerPort)}
		}
		cause.Because = append(cause.Because, why.Cause{Code: "NobodyListens", Text: text,
			Evidence: []why.Evidence{why.See(q.self, specField("container", c.Name, "ports"), why.And(portTexts(c)))}})
	case containsOne(e.Message, "deadline exceeded", "timed out", "Client.Timeout"):
		cause.Because = append(cause.Because, why.Cause{Code: "ProbeTimeout",
			Text: fmt.Sprintf("There was no answer within timeoutSeconds (%d s).", max(p.TimeoutSeconds, 1)),
			Evidence: []why.Evidence{why.See(q.self, specField("container", c.Name,
				strings.ToLower(kind)+"Probe.timeoutSeconds"), fmt.Sprint(max(p.TimeoutSeconds, 1)))}})
	case p.HTTPGet != nil && (containsOne(e.Message, "server gave HTTP response to HTTPS client",
		"malformed HTTP response") || strings.Contains(e.Message, "statuscode: 400") &&
		p.HTTPGet.Scheme != corev1.URISchemeHTTPS):
		cause.Because = append(cause.Because, probeScheme(q, c, kind, p))
	case containsOne(e.Message, "statuscode: 401", "statuscode: 403"):
		cause.Because = append(cause.Because, why.Cause{Code: "ProbeDenied",
			Text: "The server wants credentials at this path, and the kubelet has none.",
			Fixes: []why.Fix{{Text: "Let the probe ask a path that needs no credentials, or give it them by " +
				"httpHeaders."}}})
	case strings.Contains(e.Message, "statuscode: 404"):
		if p.HTTPGet != nil {
			cause.Because = append(cause.Because, why.Cause{Code: "ProbePathMissing",
				Text: fmt.Sprintf("The server in the container does not know the path %s.", p.HTTPGet.Path),
				Evidence: []why.Evidence{why.See(q.self, specField("container", c.Name,
					strings.ToLower(kind)+"Probe.httpGet.path"), p.HTTPGet.Path)}})
		}
	}
	s := status(q.pod.Status.ContainerStatuses, c.Name)
	running := s != nil && s.State.Running != nil
	r := q.program(ctx, c, "container", !running, "")
	if p.Exec != nil {
		cause.Because = append(cause.Because, r.hosts(ctx, r.probed(kind, p.Exec.Command, e.Message))...)
	}
	if running {
		// A program is often not ready for want of another: what it says and calls may tell.
		cause.Evidence = append(cause.Evidence, r.evidence()...)
		if said := r.because(ctx, nil); strings.Contains(e.Message, "statuscode: ") {
			// The server answers, and says that it is not ready: what it lacks tells more than the answer.
			cause.Because = append(said, cause.Because...)
		} else {
			cause.Because = append(cause.Because, said...)
		}
	}
	return cause
}

// movedProbe is the change by which a probe of a workload's pods asks another port. owner is nil for a pod of its own.
func movedProbe(owner *why.Object, c *corev1.Container, kind string, p *corev1.Probe, port int32) why.Fix {
	f := why.Fix{Text: fmt.Sprintf("Let the probe ask port %d.", port)}
	if owner == nil || !slices.Contains(withTemplates, owner.Kind) {
		return f // a pod's probes cannot be changed
	}
	action := "tcpSocket"
	switch {
	case p.HTTPGet != nil:
		action = "httpGet"
	case p.GRPC != nil:
		action = "grpc"
	}
	// A strategic merge patch finds the container by its name.
	f.Command = why.Command("kubectl patch %s%s -p %s", owner.Arg(), owner.Flag(), fmt.Sprintf(
		`{"spec":{"template":{"spec":{"containers":[{"name":%q,"%sProbe":{"%s":{"port":%d}}}]}}}}`, c.Name,
		strings.ToLower(kind), action, port))
	return f
}

// probeScheme explains a probe that speaks HTTP with a server that wants HTTPS, or the other way round.
func probeScheme(q *inquiry, c *corev1.Container, kind string, p *corev1.Probe) why.Cause {
	scheme, other := cmp.Or(p.HTTPGet.Scheme, corev1.URISchemeHTTP), corev1.URISchemeHTTPS
	if scheme == corev1.URISchemeHTTPS {
		other = corev1.URISchemeHTTP
	}
	field := strings.ToLower(kind) + "Probe.httpGet.scheme"
	return why.Cause{Code: "ProbeScheme",
		Text:     fmt.Sprintf("The probe asks by %s, and the server seems to speak %s at that port.", scheme, other),
		Evidence: []why.Evidence{why.See(q.self, specField("container", c.Name, field), string(scheme))},
		Fixes:    []why.Fix{{Text: fmt.Sprintf("Set the probe's scheme to %s.", other)}}}
}

func probe(c *corev1.Container, kind string) *corev1.Probe {
	switch kind {
	case "Startup":
		return c.StartupProbe
	case "Liveness":
		return c.LivenessProbe
	}
	return c.ReadinessProbe
}

// probeText says in short what a probe does.
func probeText(p *corev1.Probe) string {
	switch {
	case p.HTTPGet != nil:
		return fmt.Sprintf("GET %s at port %s%s", p.HTTPGet.Path, p.HTTPGet.Port.String(), at(p.HTTPGet.Host))
	case p.TCPSocket != nil:
		return "TCP at port " + p.TCPSocket.Port.String() + at(p.TCPSocket.Host)
	case p.GRPC != nil:
		return fmt.Sprintf("gRPC at port %d", p.GRPC.Port)
	case p.Exec != nil:
		return "exec " + why.Quote(strings.Join(p.Exec.Command, " "))
	}
	return "no action"
}

func at(host string) string {
	if host == "" {
		return ""
	}
	return " of host " + host
}

// probeHost is the host that a probe asks in place of the pod's address, "" for the pod's.
func probeHost(p *corev1.Probe) string {
	switch {
	case p.HTTPGet != nil:
		return p.HTTPGet.Host
	case p.TCPSocket != nil:
		return p.TCPSocket.Host
	}
	return ""
}

func probePort(p *corev1.Probe) (intstr.IntOrString, bool) {
	switch {
	case p.HTTPGet != nil:
		return p.HTTPGet.Port, true
	case p.TCPSocket != nil:
		return p.TCPSocket.Port, true
	case p.GRPC != nil:
		return intstr.FromInt32(p.GRPC.Port), true
	}
	return intstr.IntOrString{}, false
}

func named(c *corev1.Container, name string) bool {
	for _, p := range c.Ports {
		if p.Name == name {
			return true
		}
	}
	return false
}

func numbered(c *corev1.Container, number int32) bool {
	for _, p := range c.Ports {
		if p.ContainerPort == number {
			return true
		}
	}
	return false
}

func portTexts(c *corev1.Container) (list []string) {
	for _, p := range c.Ports {
		text := fmt.Sprint(p.ContainerPort)
		if p.Name != "" {
			text += " (" + p.Name + ")"
		}
		list = append(list, text)
	}
	return list
}
