package diff

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/write"
)

// mask hides the values of two versions of a Secret, but still shows which of them differ. It changes the objects
// themselves. before and after may be nil.
func mask(before, after *unstructured.Unstructured) {
	for _, field := range []string{"data", "stringData"} {
		was, is := values(before, field), values(after, field)
		for key, value := range is {
			old, had := was[key]
			switch {
			case had && old != value:
				was[key], is[key] = "*** (before)", "*** (after)"
			case had:
				was[key], is[key] = "***", "***"
			default:
				is[key] = "***"
			}
		}
		for key := range was {
			if _, kept := is[key]; !kept {
				was[key] = "***"
			}
		}
	}
	for _, u := range []*unstructured.Unstructured{before, after} {
		if u == nil {
			continue
		}
		// The last applied configuration also holds the values.
		if a := u.GetAnnotations(); a[write.LastAppliedAnnotation] != "" {
			a[write.LastAppliedAnnotation] = "***"
			u.SetAnnotations(a)
		}
	}
}

// values returns a map field of u itself, not a copy, because mask changes it; nil if u or the field is missing.
func values(u *unstructured.Unstructured, field string) map[string]any {
	if u == nil {
		return nil
	}
	m, ok := u.Object[field].(map[string]any)
	if !ok {
		return nil
	}
	return m
}
