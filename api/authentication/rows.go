// Package authentication defines the kinds of the API group authentication.k8s.io (v1): their rows, defaults,
// validation, strategies and table columns, as pure functions.
package authentication

import "bonsai/api/resources"

// Rows returns the resources of the group.
func Rows() []resources.Row {
	return []resources.Row{selfSubjectReviewRow(), tokenReviewRow()}
}
