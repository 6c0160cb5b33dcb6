// Package policy gives access to the kinds of policy/v1 that components use.
package policy

import (
	policyv1 "k8s.io/api/policy/v1"

	"bonsai/pkg/apiclient"
)

// PodDisruptionBudgets gives access to poddisruptionbudgets.
func PodDisruptionBudgets(c *apiclient.Client) *apiclient.Resource[*policyv1.PodDisruptionBudget] {
	return apiclient.NewResource(c, policyv1.SchemeGroupVersion, "poddisruptionbudgets",
		&policyv1.PodDisruptionBudget{})
}
