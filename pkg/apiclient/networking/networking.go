// Package networking gives access to the kinds of networking.k8s.io/v1 that components use.
package networking

import (
	networkingv1 "k8s.io/api/networking/v1"

	"bonsai/pkg/apiclient"
)

// NetworkPolicies gives access to networkpolicies.
func NetworkPolicies(c *apiclient.Client) *apiclient.Resource[*networkingv1.NetworkPolicy] {
	return apiclient.NewResource(c, networkingv1.SchemeGroupVersion, "networkpolicies", &networkingv1.NetworkPolicy{})
}

// ServiceCIDRs gives access to servicecidrs.
func ServiceCIDRs(c *apiclient.Client) *apiclient.Resource[*networkingv1.ServiceCIDR] {
	return apiclient.NewResource(c, networkingv1.SchemeGroupVersion, "servicecidrs", &networkingv1.ServiceCIDR{})
}

// IPAddresses gives access to ipaddresses.
func IPAddresses(c *apiclient.Client) *apiclient.Resource[*networkingv1.IPAddress] {
	return apiclient.NewResource(c, networkingv1.SchemeGroupVersion, "ipaddresses", &networkingv1.IPAddress{})
}
