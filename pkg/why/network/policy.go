package network

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/why"
)

// Policy explains a NetworkPolicy that does nothing, or admits nobody.
func Policy(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	p, known := why.Get[networkingv1.NetworkPolicy](ctx, c.World, o.Namespace, o.Name)
	if p == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf(networkingv1.GroupName, "NetworkPolicy", p)
	a := why.Answer{Subject: self}
	edit := why.Fix{Text: "Change it.", Command: "kubectl edit " + self.Arg() + self.Flag()}
	add := func(code, text, field, value string) {
		a.Causes = append(a.Causes, why.Cause{Code: code, Text: text, Fixes: []why.Fix{edit},
			Evidence: []why.Evidence{why.See(self, field, value)}})
	}
	selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
	if err != nil {
		a.State = fmt.Sprintf("%s has a selector that cannot be read: %s.", self, why.Quote(err.Error()))
		return a, nil
	}
	pods, complete := why.List[corev1.Pod](ctx, c.World, p.Namespace, selector)
	if len(pods) == 0 && complete {
		add("PolicyOfNothing", fmt.Sprintf("No pod in namespace %s matches its podSelector %s.", p.Namespace,
			metav1.FormatLabelSelector(&p.Spec.PodSelector)), ".spec.podSelector",
			metav1.FormatLabelSelector(&p.Spec.PodSelector))
	}
	if len(p.Spec.Egress) > 0 && len(p.Spec.PolicyTypes) > 0 &&
		!slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
		add("EgressNotInTypes", "It has egress rules, and its policyTypes do not have Egress: the rules have no effect.",
			".spec.policyTypes", fmt.Sprint(p.Spec.PolicyTypes))
	}
	if len(p.Spec.Ingress) > 0 && !ingress(p) {
		add("IngressNotInTypes", "It has ingress rules, and its policyTypes do not have Ingress: the rules have no effect.",
			".spec.policyTypes", fmt.Sprint(p.Spec.PolicyTypes))
	}
	others := newPeers(ctx, c, p.Namespace)
	for i, r := range p.Spec.Ingress {
		if !others.admits(r.From) {
			add("PeersMatchNobody", fmt.Sprintf("Its ingress rule %d admits only %s.", i, others.nobody(r.From)),
				fmt.Sprintf(".spec.ingress[%d].from", i), "matches nobody")
		}
	}
	for i, r := range p.Spec.Egress {
		if !others.admits(r.To) {
			add("PeersMatchNobody", fmt.Sprintf("Its egress rule %d allows only %s.", i, others.nobody(r.To)),
				fmt.Sprintf(".spec.egress[%d].to", i), "matches nobody")
		}
	}
	if a.Well = len(a.Causes) == 0; a.Well {
		a.State = fmt.Sprintf("%s restricts %s: %s.", self, why.Count(len(pods), "pod"), restriction(p))
	} else {
		a.State = fmt.Sprintf("%s does not do all that it says.", self)
	}
	return a, nil
}

// restriction says what a policy leaves to its pods. Policies add up: others may allow more.
func restriction(p *networkingv1.NetworkPolicy) string {
	var parts []string
	if ingress(p) {
		parts = append(parts, "they are reached only as "+rules(len(p.Spec.Ingress), "ingress")+" allow")
	}
	if slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
		part := "they reach only what " + rules(len(p.Spec.Egress), "egress") + " allow"
		if !slices.ContainsFunc(p.Spec.Egress, why.OpensDNS) {
			part += ", without DNS (port 53)"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", and ")
}

// rules names the rules of one direction with a verb's plural after it.
func rules(n int, direction string) string {
	if n == 0 {
		return "other policies"
	}
	return fmt.Sprintf("its rules of %s (%d)", direction, n)
}
