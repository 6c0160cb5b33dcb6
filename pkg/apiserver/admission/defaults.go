package admission

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/defaults"
)

// NewestDefault is defaults.NewestMarked for objects whose type is not known.
func NewestDefault(classes []runtime.Object, annotations ...string) (string, bool) {
	all := make([]metav1.Object, 0, len(classes))
	for _, obj := range classes {
		if m, err := meta.Accessor(obj); err == nil {
			all = append(all, m)
		}
	}
	return defaults.NewestMarked(all, annotations...)
}
