package network

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"bonsai/pkg/why"
)

// untranslated explains a headless Service whose ports differ from those of its pods: clients get the pods' addresses,
// and nothing between them changes a port.
func (q *inquiry) untranslated(ready []*corev1.Pod) (causes []why.Cause) {
	if q.service.Spec.ClusterIP != corev1.ClusterIPNone {
		return nil
	}
	for i, port := range q.service.Spec.Ports {
		number := targetNumber(&port, ready)
		if number == 0 || number == port.Port {
			continue
		}
		causes = append(causes, why.Cause{Code: "HeadlessPort",
			Text: fmt.Sprintf("It is headless: its name leads to the addresses of its pods, and nothing translates its "+
				"port %d to their port %d. Connections to port %[1]d are refused; clients must use port %d.", port.Port,
				number, number),
			Evidence: []why.Evidence{why.See(q.self, ".spec.clusterIP", corev1.ClusterIPNone),
				why.See(q.self, fmt.Sprintf(".spec.ports[?(@.port==%d)].targetPort", port.Port),
					port.TargetPort.String())},
			Fixes: []why.Fix{{Text: fmt.Sprintf("Let clients use port %d, and say so in the Service.", number),
				Command: why.Command("kubectl patch service %s%s --type=json -p %s", q.service.Name, q.self.Flag(),
					fmt.Sprintf(`[{"op":"replace","path":"/spec/ports/%d/port","value":%d}]`, i, number))},
				{Text: fmt.Sprintf("If clients must use port %d: make the Service again with an address of its own "+
					"(without clusterIP: None).", port.Port)}}})
	}
	return causes
}

// targetNumber is the number of the pods' port that a port leads to, 0 if none has a port of that name.
func targetNumber(port *corev1.ServicePort, pods []*corev1.Pod) int32 {
	if port.TargetPort.StrVal == "" {
		return cmp.Or(port.TargetPort.IntVal, port.Port)
	}
	for _, p := range pods {
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			for _, cp := range c.Ports {
				if cp.Name == port.TargetPort.StrVal {
					return cp.ContainerPort
				}
			}
		}
	}
	return 0
}

// unnamed explains ports of a Service that its EndpointSlices have under another name or protocol: proxies match them
// by both, so that such a port has no endpoints.
func (q *inquiry) unnamed(list []*discoveryv1.EndpointSlice) (causes []why.Cause) {
	var with []*discoveryv1.EndpointSlice
	for _, s := range list {
		if len(s.Endpoints) > 0 {
			with = append(with, s)
		}
	}
	if len(with) == 0 {
		return nil
	}
	for _, port := range q.service.Spec.Ports {
		protocol := cmp.Or(port.Protocol, corev1.ProtocolTCP)
		var have []string
		found := false
		for _, s := range with {
			for _, p := range s.Ports {
				name, other := deref(p.Name), cmp.Or(deref(p.Protocol), corev1.ProtocolTCP)
				found = found || name == port.Name && other == protocol
				have = add(have, portName(name)+" ("+portNumber(p.Port)+"/"+string(other)+")")
			}
		}
		if found {
			continue
		}
		o := why.ObjectOf(discoveryv1.GroupName, "EndpointSlice", with[0])
		causes = append(causes, why.Cause{Code: "SlicePortName",
			Text: fmt.Sprintf("Port %d of the Service is named %s (%s), and its EndpointSlices have no port of that name and "+
				"protocol, but %s: ports are matched by name, so that this one leads nowhere.", port.Port,
				portName(port.Name), protocol, cmp.Or(strings.Join(have, ", "), "none at all")),
			Evidence: []why.Evidence{why.See(o, ".ports[*].name", strings.Join(have, ", ")),
				why.See(q.self, fmt.Sprintf(".spec.ports[?(@.port==%d)].name", port.Port), portName(port.Name))},
			Fixes: []why.Fix{q.slicePort(with[0], &port)}})
	}
	return causes
}

// slicePort is the change by which an EndpointSlice gets a port of the Service: by another name and protocol for a port
// that no port of the Service has, if each of those that lack one gets its own, and else by one more.
func (q *inquiry) slicePort(s *discoveryv1.EndpointSlice, port *corev1.ServicePort) why.Fix {
	protocol := cmp.Or(port.Protocol, corev1.ProtocolTCP)
	o := why.ObjectOf(discoveryv1.GroupName, "EndpointSlice", s)
	edit := "kubectl edit " + o.Arg() + o.Flag()
	mine := func(p *discoveryv1.EndpointPort, sp *corev1.ServicePort) bool {
		return deref(p.Name) == sp.Name && cmp.Or(deref(p.Protocol), corev1.ProtocolTCP) ==
			cmp.Or(sp.Protocol, corev1.ProtocolTCP)
	}
	var spare []*discoveryv1.EndpointPort // those that no port of the Service has
	for i := range s.Ports {
		p := &s.Ports[i]
		if !slices.ContainsFunc(q.service.Spec.Ports, func(sp corev1.ServicePort) bool { return mine(p, &sp) }) {
			spare = append(spare, p)
		}
	}
	var lacking []string // the names of the Service's ports that the slice does not have
	for i := range q.service.Spec.Ports {
		sp := &q.service.Spec.Ports[i]
		if !slices.ContainsFunc(s.Ports, func(p discoveryv1.EndpointPort) bool { return mine(&p, sp) }) {
			lacking = append(lacking, sp.Name)
		}
	}
	if i := slices.Index(lacking, port.Name); i >= len(spare) {
		return why.Fix{Text: fmt.Sprintf("Add a port to the EndpointSlice: %s (%s), with the number at which the "+
			"endpoints listen.", portName(port.Name), protocol), Command: edit}
	} else if deref(spare[i].Name) == port.Name {
		return why.Fix{Text: fmt.Sprintf("Give the port %s of the EndpointSlice the protocol %s, as the Service does.",
			portName(port.Name), protocol), Command: edit}
	}
	return why.Fix{Text: fmt.Sprintf("Name the port of the EndpointSlice %s, as the Service does.",
		portName(port.Name)), Command: edit}
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func portName(name string) string {
	if name == "" {
		return "no name"
	}
	return name
}

func portNumber(n *int32) string {
	if n == nil {
		return "any"
	}
	return fmt.Sprint(*n)
}

// unlabelled explains EndpointSlices that somebody wrote for the Service and that do not belong to it: by their label
// alone a slice belongs to a Service.
func (q *inquiry) unlabelled(ctx context.Context) (causes []why.Cause) {
	all, _ := why.List[discoveryv1.EndpointSlice](ctx, q.World, q.service.Namespace, nil)
	for _, s := range all {
		label := s.Labels[discoveryv1.LabelServiceName]
		if label == q.service.Name || label != "" && !alike(label, q.service.Name) ||
			label == "" && !strings.HasPrefix(s.Name, q.service.Name) {
			continue
		}
		o := why.ObjectOf(discoveryv1.GroupName, "EndpointSlice", s)
		text := "has no label " + discoveryv1.LabelServiceName
		if label != "" {
			text = fmt.Sprintf("has the label %s=%s", discoveryv1.LabelServiceName, label)
		}
		causes = append(causes, why.Cause{Code: "SliceNotOfService",
			Text:     fmt.Sprintf("EndpointSlice %s %s: it does not belong to this Service.", s.Name, text),
			Evidence: []why.Evidence{why.See(o, `.metadata.labels.kubernetes\.io/service-name`, label)},
			Fixes: []why.Fix{{Text: "Give it the label.", Command: why.Command("kubectl label endpointslice %s%s %s "+
				"--overwrite", s.Name, o.Flag(), discoveryv1.LabelServiceName+"="+q.service.Name)}}})
	}
	return causes
}

// family explains a Service whose addresses are of a family that its pods do not have.
func (q *inquiry) family(ready []*corev1.Pod) []why.Cause {
	if q.ready > 0 || len(q.service.Spec.IPFamilies) == 0 {
		return nil
	}
	for _, p := range ready {
		for _, ip := range p.Status.PodIPs {
			family := corev1.IPv4Protocol
			if strings.Contains(ip.IP, ":") {
				family = corev1.IPv6Protocol
			}
			if slices.Contains(q.service.Spec.IPFamilies, family) {
				return nil
			}
		}
		if len(p.Status.PodIPs) == 0 {
			return nil
		}
	}
	var families []string
	for _, f := range q.service.Spec.IPFamilies {
		families = append(families, string(f))
	}
	return []why.Cause{{Code: "AddressFamily",
		Text: fmt.Sprintf("Its addresses are of the family %s, and its pods have none of that family: pod %s has %s.",
			why.And(families), ready[0].Name, ready[0].Status.PodIPs[0].IP),
		Evidence: []why.Evidence{why.See(q.self, ".spec.ipFamilies", why.And(families)),
			why.See(why.ObjectOf("", "Pod", ready[0]), ".status.podIPs", ready[0].Status.PodIPs[0].IP)},
		Fixes: []why.Fix{{Text: "Make the Service again with the family of its pods."}}}}
}
