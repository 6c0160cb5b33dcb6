package defaults

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NewestMarked is the name of the class that one of the annotations marks as the default with "true": of several the
// newest, and of those the first by name; false if there is none.
func NewestMarked[T metav1.Object](classes []T, annotations ...string) (string, bool) {
	var found []T
	for _, c := range classes {
		if slices.ContainsFunc(annotations, func(a string) bool { return c.GetAnnotations()[a] == "true" }) {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return "", false
	}
	return slices.MinFunc(found, func(a, b T) int {
		return cmp.Or(b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time),
			cmp.Compare(a.GetName(), b.GetName()))
	}).GetName(), true
}
