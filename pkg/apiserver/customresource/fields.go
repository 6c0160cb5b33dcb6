package customresource

import (
	"fmt"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// selectable are the fields that objects can be selected by: those of all served versions, read of objects of the stored one.
func selectable(crd *v1.CustomResourceDefinition, hub *v1.CustomResourceDefinitionVersion) (func(runtime.Object) fields.Set, []string) {
	paths := map[string][]string{} // by name
	var names []string             // of the stored version
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		for _, f := range v.SelectableFields {
			name := strings.TrimPrefix(f.JSONPath, ".")
			paths[name] = strings.Split(name, ".")
			if v == hub {
				names = append(names, name)
			}
		}
	}
	if len(paths) == 0 {
		return nil, nil
	}
	return func(obj runtime.Object) fields.Set {
		out := fields.Set{}
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return out
		}
		for name, path := range paths {
			if value, ok, err := unstructured.NestedFieldNoCopy(u.Object, path...); ok && err == nil && value != nil {
				out[name] = fmt.Sprint(value)
			} else {
				out[name] = ""
			}
		}
		return out
	}, names
}

// fieldNames are resources.Version.FieldNames of a version: all are read of stored objects under the same names.
func fieldNames(v *v1.CustomResourceDefinitionVersion) map[string]string {
	out := map[string]string{}
	for _, f := range v.SelectableFields {
		name := strings.TrimPrefix(f.JSONPath, ".")
		out[name] = name
	}
	return out
}
