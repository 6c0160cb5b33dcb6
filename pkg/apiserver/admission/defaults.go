package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/defaults"
)

// Classes lists the classes of one kind; a registry.Store of them is one.
type Classes interface {
	List(ctx context.Context, ns, labelSelector string) ([]runtime.Object, error)
}

// DefaultClass returns the name of the class that is marked as the default by one of the annotations; nil if none is.
// If several are marked, the newest counts, and of those of the same second the first by name.
func DefaultClass(ctx context.Context, classes Classes, annotations ...string) (*string, error) {
	list, err := classes.List(ctx, "", "")
	if err != nil {
		return nil, err
	}
	all := make([]metav1.Object, 0, len(list))
	for _, obj := range list {
		if m, err := meta.Accessor(obj); err == nil {
			all = append(all, m)
		}
	}
	if name, ok := defaults.NewestMarked(all, annotations...); ok {
		return &name, nil
	}
	return nil, nil
}
