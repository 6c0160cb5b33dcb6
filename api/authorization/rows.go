// Package authorization defines the kinds of the API group authorization.k8s.io (v1): their rows, defaults,
// validation, strategies and table columns, as pure functions.
package authorization

import "bonsai/api/resources"

// Rows returns the resources of the group.
func Rows() []resources.Row {
	return []resources.Row{localSubjectAccessReviewRow(), selfSubjectAccessReviewRow(), selfSubjectRulesReviewRow(),
		subjectAccessReviewRow()}
}
