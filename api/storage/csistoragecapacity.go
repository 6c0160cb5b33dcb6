package storage

import (
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/api/validate"
)

func csiStorageCapacityRow() resources.Row {
	return resources.Row{
		GVK: storagev1.SchemeGroupVersion.WithKind("CSIStorageCapacity"), Resource: "csistoragecapacities", Singular: "csistoragecapacity",
		Recheck:     resources.RecheckBoth,
		Namespaced:  true,
		StoragePath: "csistoragecapacities",
		New:         resources.Make[storagev1.CSIStorageCapacity],
		Strategy: resources.Typed[*storagev1.CSIStorageCapacity]{
			NeedsVersion:   true,
			Validate:       validateCSIStorageCapacity,
			ValidateUpdate: validateCSIStorageCapacityUpdate,
		}.Strategy(),
		Columns: resources.NameAndCreated(),
		Cells:   resources.Cells(resources.NameAndCreatedCells[*storagev1.CSIStorageCapacity]),
	}
}

func validateCSIStorageCapacity(c *storagev1.CSIStorageCapacity) field.ErrorList {
	errs := validate.Invalid(field.NewPath("storageClassName"), c.StorageClassName, apivalidation.NameIsDNSSubdomain(c.StorageClassName, false))
	errs = append(errs, validate.LabelSelector(c.NodeTopology, field.NewPath("nodeTopology"))...)
	if q := c.Capacity; q != nil && q.Sign() < 0 { // the largest size is not looked at, upstream neither
		errs = append(errs, field.Invalid(field.NewPath("capacity"), q.String(), apivalidation.IsNegativeErrorMsg))
	}
	return errs
}

func validateCSIStorageCapacityUpdate(obj, old *storagev1.CSIStorageCapacity) field.ErrorList {
	errs := validateCSIStorageCapacity(obj)
	if !apiequality.Semantic.DeepEqual(obj.NodeTopology, old.NodeTopology) {
		errs = append(errs, field.Invalid(field.NewPath("nodeTopology"), obj.NodeTopology, apivalidation.FieldImmutableErrorMsg))
	}
	return append(errs, apivalidation.ValidateImmutableField(obj.StorageClassName, old.StorageClassName, field.NewPath("storageClassName"))...)
}
