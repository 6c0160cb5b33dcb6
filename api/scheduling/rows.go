// Package scheduling defines the kinds of the API group scheduling.k8s.io (v1): their rows, defaults,
// validation, strategies and table columns, as pure functions.
package scheduling

import "bonsai/api/resources"

// Rows returns the resources of the group.
func Rows() []resources.Row {
	return []resources.Row{priorityClassRow()}
}
