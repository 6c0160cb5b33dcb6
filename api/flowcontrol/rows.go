// Package flowcontrol defines the kinds of the API group flowcontrol.apiserver.k8s.io (v1), FlowSchema and
// PriorityLevelConfiguration: their rows, defaults, validation, strategies and table columns, and the objects that
// every server keeps, as pure functions.
package flowcontrol

import "bonsai/api/resources"

// Rows returns the resources of the group.
func Rows() []resources.Row {
	return []resources.Row{flowSchemaRow(), priorityLevelRow()}
}
