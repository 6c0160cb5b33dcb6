package storage

import (
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/api/validate"
)

func csiNodeRow() resources.Row {
	return resources.Row{
		GVK: storagev1.SchemeGroupVersion.WithKind("CSINode"), Resource: "csinodes", Singular: "csinode",
		StoragePath: "csinodes",
		New:         resources.Make[storagev1.CSINode],
		Strategy: resources.Typed[*storagev1.CSINode]{
			NeedsVersion:   true,
			ReturnDeleted:  true,
			PrepareCreate:  func(n *storagev1.CSINode) { n.Status = storagev1.CSINodeStatus{} },
			PrepareUpdate:  func(n, old *storagev1.CSINode) { n.Status = *old.Status.DeepCopy() },
			Validate:       func(n *storagev1.CSINode) field.ErrorList { return validateNodeDrivers(n.Spec.Drivers) },
			ValidateUpdate: validateCSINodeUpdate,
		}.Strategy(),
		Subresources: []resources.Subresource{resources.Status(csiNodeStatusStrategy().Strategy())},
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.IntColumn("Drivers", "Drivers indicates the number of CSI drivers registered on the node"),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(n *storagev1.CSINode, now time.Time) []any {
			return []any{n.Name, int64(len(n.Spec.Drivers)), resources.Age(n.CreationTimestamp, now)}
		}),
	}
}

// csiNodeStatusStrategy is of a status without a field: the health of storage is a feature (CSIVolumeHealth) that is
// off by default.
func csiNodeStatusStrategy() resources.Typed[*storagev1.CSINode] {
	return resources.Typed[*storagev1.CSINode]{
		NeedsVersion: true,
		PrepareUpdate: func(n, old *storagev1.CSINode) {
			n.Spec = *old.Spec.DeepCopy()
			metav1.ResetObjectMetaForStatus(&n.ObjectMeta, &old.ObjectMeta)
			if len(old.Status.StorageHealth) == 0 {
				n.Status.StorageHealth = nil
			}
		},
		Resets: []string{"spec", "metadata"},
	}
}

// maxNodeID is how long a driver's name of a node may be.
const maxNodeID = 256

func validateNodeDrivers(drivers []storagev1.CSINodeDriver) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range drivers {
		d, at := &drivers[i], field.NewPath("spec", "drivers").Index(i)
		errs = append(errs, validateNodeDriver(d, at)...)
		if d.Name != "" && names.Has(d.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), d.Name))
		}
		names.Insert(d.Name)
	}
	return errs
}

func validateNodeDriver(d *storagev1.CSINodeDriver, path *field.Path) field.ErrorList {
	errs := validateDriverName(d.Name, path.Child("name"))
	switch {
	case d.NodeID == "":
		errs = append(errs, field.Required(path.Child("nodeID"), d.NodeID))
	case len(d.NodeID) > maxNodeID:
		errs = append(errs, field.Invalid(path.Child("nodeID"), d.NodeID,
			fmt.Sprintf("must be %d characters or less", maxNodeID)))
	}
	if a := d.Allocatable; a != nil && a.Count != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(*a.Count),
			path.Child("allocatable", "count"))...)
	}
	keys := sets.New[string]()
	for _, k := range d.TopologyKeys {
		if k == "" {
			errs = append(errs, field.Required(path, k))
		}
		if keys.Has(k) {
			errs = append(errs, field.Duplicate(path, k))
		}
		keys.Insert(k)
		errs = append(errs, validate.QualifiedName(k, path)...)
	}
	return errs
}

// validateCSINodeUpdate: what a driver is on a node stays while it is there, except how many volumes it can have.
func validateCSINodeUpdate(obj, old *storagev1.CSINode) field.ErrorList {
	was := map[string]storagev1.CSINodeDriver{}
	for _, d := range old.Spec.Drivers {
		d.Allocatable = nil
		was[d.Name] = d
	}
	errs := validateNodeDrivers(obj.Spec.Drivers)
	for _, now := range obj.Spec.Drivers {
		now.Allocatable = nil
		if had, ok := was[now.Name]; ok && !apiequality.Semantic.DeepEqual(now, had) {
			errs = append(errs, field.Invalid(field.NewPath("spec", "drivers"), now,
				apivalidation.FieldImmutableErrorMsg))
		}
	}
	return errs
}
