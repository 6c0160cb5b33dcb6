package network

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/why"
)

// policies explains a Service whose pods take no traffic by NetworkPolicies. Policies that let some clients through are
// no fault by themselves; they are not mentioned.
func (q *inquiry) policies(ctx context.Context, pods []*corev1.Pod) []why.Cause {
	all, _ := why.List[networkingv1.NetworkPolicy](ctx, q.World, q.service.Namespace, nil)
	if len(all) == 0 {
		return nil
	}
	clients := newPeers(ctx, q.Case, q.service.Namespace)
	var closing []*networkingv1.NetworkPolicy
	for _, p := range all {
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err != nil || !ingress(p) || !selector.Matches(labels.Set(pods[0].Labels)) {
			continue
		}
		if q.opens(p, clients) {
			return nil // policies add up: one that lets clients in is enough
		}
		closing = append(closing, p)
	}
	if len(closing) == 0 {
		return nil
	}
	ports := q.targets(pods[0])
	cause := why.Cause{Code: "NetworkPolicyDenies",
		Text: fmt.Sprintf("NetworkPolicies let nobody reach pod %s at port %s, where the Service leads.", pods[0].Name,
			why.And(ports))}
	for _, p := range closing {
		o := why.ObjectOf("networking.k8s.io", "NetworkPolicy", p)
		text := fmt.Sprintf("NetworkPolicy %s selects the pod and allows no ingress.", p.Name)
		value := "empty"
		var nobody []string
		for i := range p.Spec.Ingress {
			if rule := &p.Spec.Ingress[i]; q.hasPort(rule) && !clients.admits(rule.From) {
				nobody = append(nobody, clients.nobody(rule.From))
			}
		}
		switch {
		case len(nobody) > 0:
			value = why.And(nobody)
			text = fmt.Sprintf("NetworkPolicy %s selects the pod and admits only %s.", p.Name, strings.Join(nobody, "; or "))
		case len(p.Spec.Ingress) > 0:
			value = "port " + why.And(q.allowed(p))
			text = fmt.Sprintf("NetworkPolicy %s selects the pod and allows port %s alone. Ports of policies are "+
				"those of pods, not of Services.", p.Name, why.And(q.allowed(p)))
		}
		cause.Because = append(cause.Because, why.Cause{Code: "NetworkPolicy", Text: text,
			Evidence: []why.Evidence{why.See(o, ".spec.ingress", value)}})
	}
	cause.Fixes = []why.Fix{{Text: fmt.Sprintf("Allow the clients in a NetworkPolicy, to port %s.", why.And(ports)),
		Command: why.Command("kubectl edit networkpolicy %s%s", closing[0].Name, q.self.Flag())}}
	return []why.Cause{cause}
}

// targets are the ports of a pod that the Service leads to.
func (q *inquiry) targets(p *corev1.Pod) (ports []string) {
	for _, sp := range q.service.Spec.Ports {
		text := cmp.Or(strings.TrimPrefix(sp.TargetPort.String(), "0"), fmt.Sprint(sp.Port))
		for _, c := range p.Spec.Containers {
			for _, cp := range c.Ports {
				if sp.TargetPort.StrVal != "" && cp.Name == sp.TargetPort.StrVal {
					text = fmt.Sprintf("%d (%s)", cp.ContainerPort, cp.Name)
				}
			}
		}
		ports = append(ports, text+protocolText(sp.Protocol, corev1.ProtocolTCP))
	}
	return ports
}

// protocolText is the protocol of a port, if it is not the usual one.
func protocolText(p, usual corev1.Protocol) string {
	if p = cmp.Or(p, corev1.ProtocolTCP); p == cmp.Or(usual, corev1.ProtocolTCP) {
		return ""
	}
	return " (" + string(p) + ")"
}

// allowed are the ports that a policy's rules name, with their protocols where they are not the Service's.
func (q *inquiry) allowed(p *networkingv1.NetworkPolicy) (ports []string) {
	usual := corev1.ProtocolTCP
	if len(q.service.Spec.Ports) > 0 {
		usual = q.service.Spec.Ports[0].Protocol
	}
	for _, rule := range p.Spec.Ingress {
		for _, port := range rule.Ports {
			text := "any"
			if port.Port != nil {
				text = port.Port.String()
			}
			ports = append(ports, text+protocolText(deref(port.Protocol), usual))
		}
	}
	return ports
}

// ingress reports whether a policy is about incoming traffic: all are that say nothing.
func ingress(p *networkingv1.NetworkPolicy) bool {
	return len(p.Spec.PolicyTypes) == 0 || slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
}

// opens reports whether a rule of the policy admits anybody to a port of the Service.
func (q *inquiry) opens(p *networkingv1.NetworkPolicy, clients *peers) bool {
	return slices.ContainsFunc(p.Spec.Ingress, func(r networkingv1.NetworkPolicyIngressRule) bool {
		return q.hasPort(&r) && clients.admits(r.From)
	})
}

// hasPort reports whether a rule has a port of the Service, or has no ports and so all of them.
func (q *inquiry) hasPort(rule *networkingv1.NetworkPolicyIngressRule) bool {
	if len(rule.Ports) == 0 {
		return true
	}
	for _, port := range rule.Ports {
		for _, sp := range q.service.Spec.Ports {
			if cmp.Or(deref(port.Protocol), corev1.ProtocolTCP) != cmp.Or(sp.Protocol, corev1.ProtocolTCP) {
				continue
			}
			if port.Port == nil {
				return true
			}
			end := port.Port.IntVal
			if port.EndPort != nil {
				end = *port.EndPort
			}
			if *port.Port == sp.TargetPort || sp.TargetPort.StrVal == "" &&
				sp.TargetPort.IntVal >= port.Port.IntVal &&
				sp.TargetPort.IntVal <= end || sp.TargetPort.StrVal != "" || port.Port.StrVal != "" {
				return true // names may stand for any number: give the benefit of the doubt
			}
		}
	}
	return false
}
