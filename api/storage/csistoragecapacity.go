package storage

import (
	"fmt"
	"maps"
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

func csiStorageCapacityRow() resources.Row {
	return resources.Row{
		GVK: storagev1.SchemeGroupVersion.WithKind("CSIStorageCapacity"), Resource: "csistoragecapacities",
		Singular:    "csistoragecapacity",
		Namespaced:  true,
		StoragePath: "csistoragecapacities",
		New:         resources.Make[storagev1.CSIStorageCapacity],
		Strategy: resources.Typed[*storagev1.CSIStorageCapacity]{
			NeedsVersion:   true,
			Validate:       validateCSIStorageCapacity,
			ValidateUpdate: validateCSIStorageCapacityUpdate,
			Warnings:       csiStorageCapacityWarnings,
		}.Strategy(),
		Columns: resources.NameAndCreated(),
		Cells:   resources.Cells(resources.NameAndCreatedCells[*storagev1.CSIStorageCapacity]),
	}
}

// csiStorageCapacityWarnings tells of old labels that nodes are selected by.
func csiStorageCapacityWarnings(c, _ *storagev1.CSIStorageCapacity) []string {
	if c.NodeTopology == nil {
		return nil
	}
	at := field.NewPath("nodeTopology")
	var w []string
	for i, e := range c.NodeTopology.MatchExpressions {
		if old := podspec.OldLabel(e.Key); old != "" {
			w = append(w, fmt.Sprintf("%s: %s is %s", at.Child("matchExpressions").Index(i).Child("key"), e.Key, old))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.NodeTopology.MatchLabels)) {
		if old := podspec.OldLabel(key); old != "" {
			w = append(w, fmt.Sprintf("%s: %s", at.Child("matchLabels", key), old))
		}
	}
	return w
}

func validateCSIStorageCapacity(c *storagev1.CSIStorageCapacity) field.ErrorList {
	errs := validate.Invalid(field.NewPath("storageClassName"), c.StorageClassName,
		apivalidation.NameIsDNSSubdomain(c.StorageClassName, false))
	errs = append(errs, validate.LabelSelector(c.NodeTopology, field.NewPath("nodeTopology"))...)
	if q := c.Capacity; q != nil && q.Sign() < 0 { // the largest size is not looked at, upstream neither
		errs = append(errs, field.Invalid(field.NewPath("capacity"), q.String(), apivalidation.IsNegativeErrorMsg))
	}
	return errs
}

func validateCSIStorageCapacityUpdate(obj, old *storagev1.CSIStorageCapacity) field.ErrorList {
	errs := validateCSIStorageCapacity(obj)
	if !apiequality.Semantic.DeepEqual(obj.NodeTopology, old.NodeTopology) {
		errs = append(errs, field.Invalid(field.NewPath("nodeTopology"), obj.NodeTopology,
			apivalidation.FieldImmutableErrorMsg))
	}
	return append(errs, apivalidation.ValidateImmutableField(obj.StorageClassName, old.StorageClassName,
		field.NewPath("storageClassName"))...)
}
