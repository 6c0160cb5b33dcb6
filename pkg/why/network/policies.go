package network

import (
	"context"
	"fmt"
	"slices"

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
	var closing []*networkingv1.NetworkPolicy
	for _, p := range all {
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err != nil || !ingress(p) || !selector.Matches(labels.Set(pods[0].Labels)) {
			continue
		}
		if len(p.Spec.Ingress) > 0 && q.opens(p) {
			return nil // policies add up: one that lets clients in is enough
		}
		closing = append(closing, p)
	}
	if len(closing) == 0 {
		return nil
	}
	cause := why.Cause{Code: "NetworkPolicyDenies",
		Text: fmt.Sprintf("NetworkPolicies let nobody reach the Service's port of pod %s.", pods[0].Name)}
	for _, p := range closing {
		o := why.ObjectOf("networking.k8s.io", "NetworkPolicy", p)
		text := fmt.Sprintf("NetworkPolicy %s selects the pod and allows no ingress.", p.Name)
		value := "empty"
		if len(p.Spec.Ingress) > 0 {
			text, value = fmt.Sprintf("NetworkPolicy %s selects the pod and allows other ports only.", p.Name),
				"other ports"
		}
		cause.Because = append(cause.Because, why.Cause{Code: "NetworkPolicy", Text: text,
			Evidence: []why.Evidence{why.See(o, ".spec.ingress", value)}})
	}
	cause.Fixes = []why.Fix{{Text: "Allow the clients by an ingress rule."}}
	return []why.Cause{cause}
}

// ingress reports whether a policy is about incoming traffic: all are that say nothing.
func ingress(p *networkingv1.NetworkPolicy) bool {
	return len(p.Spec.PolicyTypes) == 0 || slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
}

// opens reports whether a rule of the policy has a port of the Service, or has no ports and so all of them.
func (q *inquiry) opens(p *networkingv1.NetworkPolicy) bool {
	for _, rule := range p.Spec.Ingress {
		if len(rule.Ports) == 0 {
			return true
		}
		for _, port := range rule.Ports {
			if port.Port == nil {
				return true
			}
			for _, sp := range q.service.Spec.Ports {
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
	}
	return false
}
