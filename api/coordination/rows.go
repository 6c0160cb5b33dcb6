// Package coordination defines the kinds of the API group coordination.k8s.io (v1): their rows, defaults,
// validation, strategies and table columns, as pure functions.
package coordination

import "bonsai/api/resources"

// Rows returns the resources of the group.
func Rows() []resources.Row {
	return []resources.Row{leaseRow()}
}
