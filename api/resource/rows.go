// Package resource defines the kinds of the API group resource.k8s.io (v1): their rows, defaults, validation,
// strategies and table columns, as pure functions. Dynamic resource allocation gives the devices of these kinds to
// pods.
package resource

import (
	"time"

	"bonsai/api/resources"
)

// Rows returns the resources of the group. now is the clock for when a device was tainted; nil leaves that to who
// taints it.
func Rows(now func() time.Time) []resources.Row {
	return []resources.Row{deviceClassRow(), deviceTaintRuleRow(now), resourceClaimRow(), resourceClaimTemplateRow(),
		resourceSliceRow(now)}
}
