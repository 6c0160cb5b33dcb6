package apiextensions

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// Definition abbreviates the kind's name.
type Definition = apiextensionsv1.CustomResourceDefinition

// Default fills in what the client left out.
func Default(crd *Definition) {
	names := &crd.Spec.Names
	if names.Singular == "" {
		names.Singular = strings.ToLower(names.Kind)
	}
	if names.ListKind == "" && names.Kind != "" {
		names.ListKind = names.Kind + "List"
	}
	if crd.Spec.Conversion == nil {
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
	if w := crd.Spec.Conversion.Webhook; w != nil && w.ClientConfig != nil && w.ClientConfig.Service != nil &&
		w.ClientConfig.Service.Port == nil {
		port := int32(443)
		w.ClientConfig.Service.Port = &port
	}
	if len(crd.Status.StoredVersions) == 0 {
		if v, ok := storageVersion(crd); ok {
			crd.Status.StoredVersions = []string{v}
		}
	}
}

// storageVersion is the version that objects are stored in, whose name may be wrong; false: there is none.
func storageVersion(crd *Definition) (string, bool) {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name, true
		}
	}
	return "", false
}

// PrepareCreate drops what a client may not set: the status except for the storage version, which counts as stored from
// now on.
func PrepareCreate(crd *Definition) {
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	noteStored(crd)
}

// PrepareUpdate keeps the status of old, and notes the storage version in it.
func PrepareUpdate(crd, old *Definition) {
	old.Status.DeepCopyInto(&crd.Status)
	noteStored(crd)
}

func noteStored(crd *Definition) {
	if v, ok := storageVersion(crd); ok && !slices.Contains(crd.Status.StoredVersions, v) {
		crd.Status.StoredVersions = append(crd.Status.StoredVersions, v)
	}
}

// PrepareStatusUpdate keeps what the status subresource does not write.
func PrepareStatusUpdate(crd, old *Definition) { old.Spec.DeepCopyInto(&crd.Spec) }

// SpecChanged reports whether metadata.generation moves.
func SpecChanged(crd, old *Definition) bool {
	return !apiequality.Semantic.DeepEqual(crd.Spec, old.Spec)
}
