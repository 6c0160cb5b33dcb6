// Package node defines the kinds of the API group node.k8s.io (v1): their rows, validation, strategies and
// table columns, as pure functions.
package node

import "bonsai/api/resources"

// Rows returns the resources of the group.
func Rows() []resources.Row {
	return []resources.Row{runtimeClassRow()}
}
