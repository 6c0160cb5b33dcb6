package resource

import (
	"encoding/json"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Encode writes obj as JSON. A typed object must have its kind and apiVersion set.
func Encode(obj runtime.Object) ([]byte, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.MarshalJSON()
	}
	return json.Marshal(obj)
}

// ToUnstructured converts a typed object of kind gvk. A null metadata.creationTimestamp is left out.
func ToUnstructured(obj runtime.Object, gvk schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u, nil
}

// FromUnstructured fills the typed object into from u, ignoring fields the type does not know.
func FromUnstructured(u *unstructured.Unstructured, into runtime.Object) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

// Query writes options (metav1.ListOptions and its like, by pointer) as URL parameters.
func Query(opts any) url.Values {
	values, err := queryparams.Convert(opts)
	if err != nil {
		return nil // only for values that are not structs
	}
	values.Del("kind")
	values.Del("apiVersion")
	return values
}

// DryRun is the value of dryRun options: {"All"} or nil.
func DryRun(on bool) []string {
	if on {
		return []string{metav1.DryRunAll}
	}
	return nil
}
