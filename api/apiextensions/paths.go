package apiextensions

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type version = apiextensionsv1.CustomResourceDefinitionVersion

// part is a field that each version of a definition has, with the path that errors name. If all versions have the same
// value, Kubernetes names the path in the spec, where v1beta1 had it. Clients of v1 see that path as well, so it is
// kept.
type part struct {
	// shared and own are the fields' names in the spec and in a version.
	shared, own []string
	of          func(v *version) any
}

var (
	schemaPart = part{shared: []string{"validation", "openAPIV3Schema"}, own: []string{"schema", "openAPIV3Schema"},
		of: func(v *version) any {
			return v.Schema
		}}
	subPart = part{shared: []string{"subresources"}, own: []string{"subresources"}, of: func(v *version) any {
		return v.Subresources
	}}
	columnPart = part{shared: []string{"additionalPrinterColumns"}, own: []string{"additionalPrinterColumns"},
		of: func(v *version) any {
			return v.AdditionalPrinterColumns
		}}
	selectPart = part{shared: []string{"selectableFields"}, own: []string{"selectableFields"},
		of: func(v *version) any {
			return v.SelectableFields
		}}
)

// isShared reports whether all versions have the same value. It holds for a definition with one version.
func (p part) isShared(crd *definition) bool {
	versions := crd.Spec.Versions
	return !slices.ContainsFunc(versions, func(v version) bool {
		return !apiequality.Semantic.DeepEqual(p.of(&v), p.of(&versions[0]))
	})
}

// places yields the versions to check, with the path of the part. A shared value is yielded once, so a definition of
// ten versions with one schema costs one check and gives one error.
func (p part) places(crd *definition) func(yield func(v *version, path *field.Path) bool) {
	spec := field.NewPath("spec")
	return func(yield func(v *version, path *field.Path) bool) {
		if len(crd.Spec.Versions) == 0 {
			return
		}
		if p.isShared(crd) {
			yield(&crd.Spec.Versions[0], spec.Child(p.shared[0], p.shared[1:]...))
			return
		}
		for i := range crd.Spec.Versions {
			if !yield(&crd.Spec.Versions[i], spec.Child("versions").Index(i).Child(p.own[0], p.own[1:]...)) {
				return
			}
		}
	}
}
