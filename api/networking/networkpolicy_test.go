package networking

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
)

// TestRangesMayStay: ranges that are written as nobody may write them any more are no error of a later change of their
// policy.
func TestRangesMayStay(t *testing.T) {
	t.Parallel()
	policy := func(cidr, except string) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{{
				IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: []string{except}}}}}},
		}}
	}
	old := policy("010.0.0.1/8", "10.1.0.1/16")
	if errs := validateNetworkPolicyUpdate(policy("010.0.0.1/8", "10.1.0.1/16"), old); len(errs) > 0 {
		t.Errorf("unchanged: %v", errs)
	}
	if errs := validateNetworkPolicyUpdate(policy("010.0.0.1/8", "10.2.0.1/16"), old); len(errs) != 1 {
		t.Errorf("another exception: %v, want one error", errs)
	}
	if errs := validateNetworkPolicy(old); len(errs) != 2 {
		t.Errorf("new: %v, want two errors", errs)
	}
}
