package pod

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/why"
)

// inUse and privileged match the messages of programs that cannot get their port.
var (
	inUse      = regexp.MustCompile(`(?i)address (already )?in use|EADDRINUSE|port is already (allocated|in use)`)
	privileged = regexp.MustCompile(`(?i)(?:bind|listen).{0,80}?[:\]](\d{1,3})\b.{0,80}(?:permission denied|EACCES)|` +
		`(?:permission denied|EACCES).{0,80}?[:\]](\d{1,3})\b`)
)

// ports explains a program that cannot listen.
func (p *program) ports() (causes []why.Cause) {
	for _, line := range slices.Backward(p.said) {
		switch {
		case inUse.MatchString(line):
			if causes = p.portTaken(line); len(causes) > 0 {
				return causes
			}
		case privileged.MatchString(line):
			id, field, known := p.user()
			if !known || id == 0 {
				continue
			}
			return []why.Cause{{Code: "PrivilegedPort",
				Text:     fmt.Sprintf("The container runs as user %d, who may not listen at ports below 1024 there.", id),
				Evidence: []why.Evidence{why.See(p.self, field, fmt.Sprint(id))},
				Fixes: []why.Fix{{Text: "Let the program listen at a port from 1024 on: a Service can have port 80 all the " +
					"same (targetPort)."}}}}
		}
	}
	return nil
}

// portTaken explains a port that another container of the pod has, or its node.
func (p *program) portTaken(line string) []why.Cause {
	for _, c := range slices.Concat(p.pod.Spec.Containers, p.pod.Spec.InitContainers) {
		if c.Name == p.c.Name {
			continue
		}
		for _, port := range c.Ports {
			own := slices.ContainsFunc(p.c.Ports, func(o corev1.ContainerPort) bool {
				return o.ContainerPort == port.ContainerPort && o.Protocol == port.Protocol
			})
			if !own && !strings.Contains(line, fmt.Sprintf(":%d", port.ContainerPort)) {
				continue
			}
			return []why.Cause{{Code: "PortTaken",
				Text: fmt.Sprintf("Container %s of the same pod uses port %d, too: the containers of a pod share one "+
					"address.", c.Name, port.ContainerPort),
				Evidence: []why.Evidence{why.See(p.self, specField("container", c.Name, "ports"),
					fmt.Sprint(port.ContainerPort))},
				Fixes: []why.Fix{{Text: "Let one of the two listen at another port."}}}}
		}
	}
	if p.pod.Spec.HostNetwork {
		return []why.Cause{{Code: "PortTaken",
			Text: fmt.Sprintf("The pod uses the network of node %s (hostNetwork), where another program or pod has that "+
				"port.", p.pod.Spec.NodeName),
			Evidence: []why.Evidence{why.See(p.self, ".spec.hostNetwork", "true")}}}
	}
	return nil
}
