// Package certificates defines the kinds of the API group certificates.k8s.io (v1): their rows, validation,
// strategies and table columns, and what Kubernetes' own signers require of a request, as pure functions.
package certificates

import (
	"time"

	"bonsai/api/resources"
)

// Rows returns the resources of the group. now is the clock for the times of conditions, and for when certificates of
// pods begin; nil leaves them to who writes them.
func Rows(now func() time.Time) []resources.Row {
	return []resources.Row{signingRequestRow(now), trustBundleRow(), podRequestRow(now)}
}
