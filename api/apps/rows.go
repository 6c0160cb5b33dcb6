// Package apps holds what we know of the kinds of the group apps (v1): their rows, defaults, validation, strategies and
// table columns, as pure functions.
package apps

import "bonsai/api/resources"

// Rows returns the resources of the group.
func Rows() []resources.Row {
	return []resources.Row{controllerRevisionRow(), daemonSetRow(), deploymentRow(), replicaSetRow(), statefulSetRow()}
}
