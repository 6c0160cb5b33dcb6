// Package coordination gives access to the kinds of coordination.k8s.io/v1 that components use.
package coordination

import (
	coordinationv1 "k8s.io/api/coordination/v1"

	"bonsai/pkg/apiclient"
)

// Leases gives access to leases.
func Leases(c *apiclient.Client) *apiclient.Resource[*coordinationv1.Lease] {
	return apiclient.NewResource(c, coordinationv1.SchemeGroupVersion, "leases", &coordinationv1.Lease{})
}
