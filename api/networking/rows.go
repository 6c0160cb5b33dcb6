// Package networking defines the kinds of the API group networking.k8s.io (v1): their rows, defaults,
// validation, strategies and table columns, as pure functions.
package networking

import "bonsai/api/resources"

// Rows returns the resources of the group.
func Rows() []resources.Row {
	return []resources.Row{ingressRow(), ingressClassRow(), ipAddressRow(), networkPolicyRow(), serviceCIDRRow()}
}
