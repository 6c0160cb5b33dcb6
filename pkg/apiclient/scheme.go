package apiclient

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NewScheme returns a scheme of the kinds that add registers, and no more: a scheme holds several maps' entries for
// every kind, and the program every registered type with all its methods. add are upstream's AddToScheme functions, or
// Only.
func NewScheme(add ...func(*runtime.Scheme) error) (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	// Status, the options of requests and the events of watches belong to the unnamed group.
	metav1.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	for _, f := range add {
		if err := f(s); err != nil {
			return nil, fmt.Errorf("registering API types: %w", err)
		}
	}
	return s, nil
}

// Only registers some of a group version's kinds for NewScheme. Those who list a kind need its list, too.
func Only(gv schema.GroupVersion, objects ...runtime.Object) func(*runtime.Scheme) error {
	return func(s *runtime.Scheme) error {
		s.AddKnownTypes(gv, objects...)
		metav1.AddToGroupVersion(s, gv)
		return nil
	}
}
