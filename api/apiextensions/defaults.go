package apiextensions

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
)

// definition abbreviates the kind's name.
type definition = apiextensionsv1.CustomResourceDefinition

// Default sets the fields that the client left out. It is idempotent.
func Default(crd *definition) {
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

// storageVersion returns the name of the version in which objects are stored. The name may be invalid, because Default
// runs before validation. It returns false if no version is marked.
func storageVersion(crd *definition) (string, bool) {
	for _, v := range crd.Spec.Versions {
		if v.Storage {
			return v.Name, true
		}
	}
	return "", false
}

// prepareCreate drops the status that a client sent. The storage version counts as stored from now on, before the first
// object exists.
func prepareCreate(crd *definition) {
	crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	noteStored(crd)
}

// prepareUpdate keeps old's status, and adds the storage version to storedVersions. Versions are never removed
// here: only an administrator knows when no object is stored in one any more.
func prepareUpdate(crd, old *definition) {
	old.Status.DeepCopyInto(&crd.Status)
	noteStored(crd)
}

func noteStored(crd *definition) {
	if v, ok := storageVersion(crd); ok && !slices.Contains(crd.Status.StoredVersions, v) {
		crd.Status.StoredVersions = append(crd.Status.StoredVersions, v)
	}
}

// prepareStatusUpdate keeps the spec, which the status subresource does not write.
func prepareStatusUpdate(crd, old *definition) { old.Spec.DeepCopyInto(&crd.Spec) }

// specChanged reports whether metadata.generation increases.
func specChanged(crd, old *definition) bool {
	return !apiequality.Semantic.DeepEqual(crd.Spec, old.Spec)
}
