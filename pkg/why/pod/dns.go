package pod

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/why"
)

// lookupFailed is what programs say when they do not find a name: resolvers of Go, glibc, musl and busybox, nslookup.
var lookupFailed = regexp.MustCompile(`(?i)no such host|NXDOMAIN|bad address|name or service not known|` +
	`could not resolve|temporary failure in name resolution|can't (find|resolve)|no servers could be reached|` +
	`name does not resolve`)

// names explains a failure whose text says that a name was not found: by the pod's DNS settings, or by policies that
// keep it from asking. nil if the text says nothing of it, or nothing is wrong with these.
func (q *inquiry) names(ctx context.Context, text string) []why.Cause {
	if !lookupFailed.MatchString(text) {
		return nil
	}
	spec := &q.pod.Spec
	if spec.DNSPolicy != corev1.DNSDefault && !(spec.HostNetwork && spec.DNSPolicy == corev1.DNSClusterFirst) {
		return q.egress(ctx)
	}
	cause := why.Cause{Code: "DNSPolicy",
		Text: fmt.Sprintf("Its dnsPolicy is %s: it asks the DNS servers of its node, which do not know the names of "+
			"Services.",
			spec.DNSPolicy),
		Evidence: []why.Evidence{why.See(q.self, ".spec.dnsPolicy", string(spec.DNSPolicy))},
		Fixes:    []why.Fix{{Text: "Set dnsPolicy to ClusterFirst, in a new pod."}}}
	if spec.HostNetwork {
		cause.Text = fmt.Sprintf("It uses its node's network (hostNetwork), where the dnsPolicy %s means Default: "+
			"it asks the DNS servers of its node, which do not know the names of Services.", spec.DNSPolicy)
		cause.Evidence = append(cause.Evidence, why.See(q.self, ".spec.hostNetwork", "true"))
		cause.Fixes = []why.Fix{{Text: "Set dnsPolicy to ClusterFirstWithHostNet, in a new pod."}}
	}
	return []why.Cause{cause}
}

// egress explains a pod whose NetworkPolicies let it ask no DNS server.
func (q *inquiry) egress(ctx context.Context) []why.Cause {
	all, _ := why.List[networkingv1.NetworkPolicy](ctx, q.World, q.pod.Namespace, nil)
	var names []string
	var closed *networkingv1.NetworkPolicy // the first of them
	var evidence []why.Evidence
	for _, p := range all {
		selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
		if err != nil || !selector.Matches(labels.Set(q.pod.Labels)) ||
			!slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			continue
		}
		if slices.ContainsFunc(p.Spec.Egress, why.OpensDNS) {
			return nil // policies add up
		}
		if names = append(names, p.Name); closed == nil {
			closed = p
		}
		evidence = append(evidence, why.See(why.ObjectOf(networkingv1.GroupName, "NetworkPolicy", p), ".spec.egress",
			why.Count(len(p.Spec.Egress), "rule")+" without port 53"))
	}
	if len(names) == 0 {
		return nil
	}
	return []why.Cause{{Code: "NetworkPolicyDeniesDNS",
		Text: fmt.Sprintf("NetworkPolicy %s restricts what the pod may reach, and does not allow DNS (port 53, UDP "+
			"and TCP): it cannot look up names.", why.And(names)), Evidence: evidence,
		Fixes: []why.Fix{openDNS(ctx, q, closed)}}}
}

// openDNS is the change by which a policy lets its pods ask the cluster's DNS.
func openDNS(ctx context.Context, q *inquiry, p *networkingv1.NetworkPolicy) why.Fix {
	type object = map[string]any
	rule := object{"ports": []object{{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}}}
	// The name of the DNS Service in every installation, whatever server it has; its selector differs.
	s, _ := why.Get[corev1.Service](ctx, q.World, metav1.NamespaceSystem, "kube-dns")
	if s != nil && len(s.Spec.Selector) > 0 {
		rule["to"] = []object{{"podSelector": object{"matchLabels": s.Spec.Selector}, "namespaceSelector": object{
			"matchLabels": object{corev1.LabelMetadataName: metav1.NamespaceSystem}}}}
	}
	return why.Fix{Text: "Allow egress to port 53 of the cluster's DNS, by UDP and TCP.",
		Command: addRule(p, networkingv1.PolicyTypeEgress, rule)}
}
