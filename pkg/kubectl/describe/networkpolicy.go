package describe

import (
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func networkPolicy(d *describer, p *networkingv1.NetworkPolicy) error {
	d.line(0, "Name:\t%s\nNamespace:\t%s\nCreated on:\t%s\n", p.Name, p.Namespace, p.CreationTimestamp)
	d.labels(0, "Labels", p.Labels)
	d.annotations(0, p.Annotations)
	selected := metav1.FormatLabelSelector(&p.Spec.PodSelector)
	if len(p.Spec.PodSelector.MatchLabels)+len(p.Spec.PodSelector.MatchExpressions) == 0 {
		selected = "<none> (Allowing the specific traffic to all pods in this namespace)"
	}
	d.line(0, "Spec:\n")
	d.line(1, "PodSelector:     %s\n", selected)
	var affected [2]bool
	var types []string
	for _, t := range p.Spec.PolicyTypes {
		affected[0] = affected[0] || t == networkingv1.PolicyTypeIngress
		affected[1] = affected[1] || t == networkingv1.PolicyTypeEgress
		types = append(types, string(t))
	}
	var in, out []trafficRule
	for _, r := range p.Spec.Ingress {
		in = append(in, trafficRule{r.Ports, r.From})
	}
	for _, r := range p.Spec.Egress {
		out = append(out, trafficRule{r.Ports, r.To})
	}
	writeTraffic(d.writer, "ingress", "From", "source", affected[0], in)
	writeTraffic(d.writer, "egress", "To", "destination", affected[1], out)
	d.line(1, "Policy Types: %s\n", strings.Join(types, ", "))
	return nil
}

// trafficRule is a rule of either direction.
type trafficRule struct {
	ports []networkingv1.NetworkPolicyPort
	peers []networkingv1.NetworkPolicyPeer
}

// writeTraffic writes the rules of one direction; side is what peers are called there, end what they are of the
// traffic.
func writeTraffic(w *writer, direction, side, end string, affected bool, rules []trafficRule) {
	if !affected {
		w.line(1, "Not affecting %s traffic\n", direction)
		return
	}
	w.line(1, "Allowing %s traffic:\n", direction)
	if len(rules) == 0 {
		w.line(2, "<none> (Selected pods are isolated for %s connectivity)\n", direction)
	}
	for i, r := range rules {
		if i > 0 {
			w.line(2, "----------\n")
		}
		if len(r.ports) == 0 {
			w.line(2, "To Port: <any> (traffic allowed to all ports)\n")
		}
		for _, p := range r.ports {
			w.line(2, "%s\n", policyPort(&p))
		}
		if len(r.peers) == 0 {
			w.line(2, "%s: <any> (traffic not restricted by %s)\n", side, end)
		}
		for _, p := range r.peers {
			w.line(2, "%s:\n", side)
			writePeer(w, &p)
		}
	}
}

// policyPort: a protocol without a port is shown as upstream shows it, with "<nil>".
func policyPort(p *networkingv1.NetworkPolicyPort) string {
	protocol := "TCP"
	if p.Protocol != nil {
		protocol = string(*p.Protocol)
	}
	switch {
	case p.Port == nil:
		return "To Port: <nil>/" + protocol
	case p.EndPort != nil:
		return fmt.Sprintf("To Port Range: %s-%d/%s", p.Port.String(), *p.EndPort, protocol)
	}
	return "To Port: " + p.Port.String() + "/" + protocol
}

func writePeer(w *writer, p *networkingv1.NetworkPolicyPeer) {
	if p.NamespaceSelector != nil {
		w.line(3, "NamespaceSelector: %s\n", metav1.FormatLabelSelector(p.NamespaceSelector))
	}
	if p.PodSelector != nil {
		w.line(3, "PodSelector: %s\n", metav1.FormatLabelSelector(p.PodSelector))
	}
	if b := p.IPBlock; b != nil {
		w.line(3, "IPBlock:\n")
		w.line(4, "CIDR: %s\n", b.CIDR)
		w.line(4, "Except: %s\n", strings.Join(b.Except, ", "))
	}
}
