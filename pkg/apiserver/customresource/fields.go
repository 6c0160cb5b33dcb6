package customresource

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
)

// selectable are the fields that objects of a version can be selected by, and their names. Those of others are read of
// the same objects besides: without a webhook, the objects of all versions are of one form.
func selectable(of *v1.CustomResourceDefinitionVersion,
	others ...v1.CustomResourceDefinitionVersion) (func(runtime.Object) fields.Set, []string) {
	paths := map[string][]string{} // by name
	var names []string
	for _, f := range of.SelectableFields {
		names = append(names, strings.TrimPrefix(f.JSONPath, "."))
	}
	for _, v := range slices.Concat(others, []v1.CustomResourceDefinitionVersion{*of}) {
		for _, f := range v.SelectableFields {
			name := strings.TrimPrefix(f.JSONPath, ".")
			paths[name] = strings.Split(name, ".")
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

// fieldNames are resources.Version.FieldNames of a version: they keep their names.
func fieldNames(v *v1.CustomResourceDefinitionVersion) map[string]string {
	out := map[string]string{}
	for _, f := range v.SelectableFields {
		name := strings.TrimPrefix(f.JSONPath, ".")
		out[name] = name
	}
	return out
}
