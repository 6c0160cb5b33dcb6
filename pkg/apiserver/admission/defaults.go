package admission

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// NewestDefault is the name of the class that one of the annotations marks as the default with "true": of several the newest, and of
// those the first by name; false if there is none.
func NewestDefault(classes []runtime.Object, annotations ...string) (string, bool) {
	var found []metav1.Object
	for _, obj := range classes {
		m, err := meta.Accessor(obj)
		if err == nil && slices.ContainsFunc(annotations, func(a string) bool { return m.GetAnnotations()[a] == "true" }) {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		return "", false
	}
	return slices.MinFunc(found, func(a, b metav1.Object) int {
		return cmp.Or(b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time), cmp.Compare(a.GetName(), b.GetName()))
	}).GetName(), true
}
