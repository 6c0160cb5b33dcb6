package storage

import (
	"maps"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
)

func volumeAttributesClassRow() resources.Row {
	return resources.Row{
		GVK: storagev1.SchemeGroupVersion.WithKind("VolumeAttributesClass"), Resource: "volumeattributesclasses",
		Singular:    "volumeattributesclass",
		ShortNames:  []string{"vac"},
		StoragePath: "volumeattributesclasses",
		New:         resources.Make[storagev1.VolumeAttributesClass],
		Strategy: resources.Typed[*storagev1.VolumeAttributesClass]{
			ReturnDeleted:  true,
			Validate:       validateAttributesClass,
			ValidateUpdate: validateAttributesClassUpdate,
		}.Strategy(),
		Columns: []metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("DriverName", storagev1.VolumeAttributesClass{}.SwaggerDoc()["driverName"]),
			resources.AgeColumn(),
		},
		Cells: resources.Cells(func(c *storagev1.VolumeAttributesClass, now time.Time) []any {
			return []any{c.Name, c.DriverName, resources.Age(c.CreationTimestamp, now)}
		}),
	}
}

func validateAttributesClass(c *storagev1.VolumeAttributesClass) field.ErrorList {
	errs := validateProvisioner(c.DriverName, field.NewPath("driverName"))
	return append(errs, validateParameters(c.Parameters, true, field.NewPath("parameters"))...)
}

func validateAttributesClassUpdate(obj, old *storagev1.VolumeAttributesClass) field.ErrorList {
	errs := validateAttributesClass(obj)
	if obj.DriverName != old.DriverName {
		errs = append(errs, field.Forbidden(field.NewPath("driverName"), "updates to driverName are forbidden."))
	}
	if !maps.Equal(obj.Parameters, old.Parameters) {
		errs = append(errs, field.Forbidden(field.NewPath("parameters"), "updates to parameters are forbidden."))
	}
	return errs
}
