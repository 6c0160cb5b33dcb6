package apiextensions

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// errNotStored is the error of documents that Kubernetes does not store. It shows no part of them.
var errNotStored = errors.New("it is no JSON of a CustomResourceDefinition of v1 or v1beta1")

// NewStoredReader returns what reads definitions as Kubernetes stores them: as JSON of v1beta1, a version that it does
// not serve any more. Its library has the conversion.
func NewStoredReader() (func(document []byte) (runtime.Object, error), error) {
	versions := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, apiextensionsv1.AddToScheme,
		apiextensionsv1beta1.AddToScheme} {
		if err := add(versions); err != nil {
			return nil, fmt.Errorf("the versions of CustomResourceDefinitions: %w", err)
		}
	}
	return func(document []byte) (runtime.Object, error) {
		var kind metav1.TypeMeta
		if json.Unmarshal(document, &kind) != nil || kind.Kind != "CustomResourceDefinition" {
			return nil, errNotStored
		}
		out := &apiextensionsv1.CustomResourceDefinition{}
		if kind.APIVersion == apiextensionsv1.SchemeGroupVersion.String() {
			if json.Unmarshal(document, out) != nil {
				return nil, errNotStored
			}
			return out, nil
		}
		var old apiextensionsv1beta1.CustomResourceDefinition
		if kind.APIVersion != apiextensionsv1beta1.SchemeGroupVersion.String() ||
			json.Unmarshal(document, &old) != nil {
			return nil, errNotStored
		}
		var between apiextensions.CustomResourceDefinition
		if err := versions.Convert(&old, &between, nil); err != nil {
			return nil, errNotStored
		}
		if err := versions.Convert(&between, out, nil); err != nil {
			return nil, errNotStored
		}
		out.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		return out, nil
	}, nil
}
