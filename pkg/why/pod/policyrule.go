package pod

import (
	"encoding/json"

	networkingv1 "k8s.io/api/networking/v1"

	"bonsai/pkg/why"
)

// addRule returns the command that adds a rule to a policy and leaves its other rules as they are.
func addRule(p *networkingv1.NetworkPolicy, direction networkingv1.PolicyType, rule map[string]any) why.CommandLine {
	field, rules := "ingress", len(p.Spec.Ingress)
	if direction == networkingv1.PolicyTypeEgress {
		field, rules = "egress", len(p.Spec.Egress)
	}
	add := map[string]any{"op": "add", "path": "/spec/" + field + "/-", "value": rule}
	if rules == 0 { // perhaps there is no list to add to
		add["path"], add["value"] = "/spec/"+field, []any{rule}
	}
	patch, err := json.Marshal([]any{add})
	if err != nil {
		return ""
	}
	self := why.ObjectOf(networkingv1.GroupName, "NetworkPolicy", p)
	return why.Command("kubectl patch networkpolicy %s%s --type=json -p %s", p.Name, self.Flag(), string(patch))
}
