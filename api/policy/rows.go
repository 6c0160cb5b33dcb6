// Package policy defines the kinds of the API group policy (v1): their rows, validation, strategies and table
// columns, as pure functions.
package policy

import "bonsai/api/resources"

// Rows returns the resources of the group.
func Rows() []resources.Row {
	return []resources.Row{disruptionBudgetRow()}
}
