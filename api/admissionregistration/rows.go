// Package admissionregistration defines the kinds of the API group admissionregistration.k8s.io (v1): their
// rows, defaults, validation, strategies and table columns, as pure functions.
package admissionregistration

import (
	"bonsai/api/admissionregistration/expression"
	"bonsai/api/resources"
)

// category is what "kubectl get" calls all resources by that extend the API.
const category = "api-extensions"

// Rows returns the resources of the group.
func Rows() []resources.Row {
	c := &expression.Compiler{}
	return []resources.Row{mutatingPolicyRow(c), mutatingBindingRow(), mutatingRow(c), validatingPolicyRow(c),
		validatingBindingRow(), validatingRow(c)}
}
