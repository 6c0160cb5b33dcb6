// Package policy holds what we know of the kinds of the group policy (v1): their rows, validation, strategies and table
// columns, as pure functions.
package policy

import "bonsai/api/resources"

// Rows returns the resources of the group.
func Rows() []resources.Row {
	return []resources.Row{disruptionBudgetRow()}
}
