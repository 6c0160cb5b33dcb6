// Package storage defines the kinds of the API group storage.k8s.io (v1): their rows, defaults, validation,
// strategies and table columns, as pure functions.
package storage

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/resources"
	"bonsai/api/validate"
)

// Rows returns the resources of the group.
func Rows() []resources.Row {
	return []resources.Row{csiDriverRow(), csiNodeRow(), csiStorageCapacityRow(), storageClassRow(),
		volumeAttachmentRow(), volumeAttributesClassRow()}
}

// maxDriverName is how long the name of a CSI driver may be, by the CSI specification.
const maxDriverName = 63

// validateDriverName checks the name of a CSI driver, which may have capital letters.
func validateDriverName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	if len(name) > maxDriverName {
		errs = append(errs, field.TooLong(path, "", maxDriverName))
	}
	return append(errs, validate.Invalid(path, name, validation.IsDNS1123Subdomain(strings.ToLower(name)))...)
}

// validateProvisioner checks the name of who makes volumes, which may have a path behind a domain.
func validateProvisioner(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return validate.QualifiedName(strings.ToLower(name), path)
}

// Bounds of parameters.
const (
	maxParameters     = 512
	maxParametersSize = 256 << 10
)

// validateParameters checks what a class hands to its driver.
func validateParameters(m map[string]string, needed bool, path *field.Path) field.ErrorList {
	if needed && len(m) == 0 {
		return field.ErrorList{field.Required(path, "must contain at least one key/value pair")}
	}
	if len(m) > maxParameters {
		return field.ErrorList{field.TooLong(path, "", maxParameters)}
	}
	var errs field.ErrorList
	size := 0
	for k, v := range m {
		if k == "" {
			errs = append(errs, field.Invalid(path, k, "field can not be empty."))
		}
		size += len(k) + len(v)
	}
	if size > maxParametersSize {
		errs = append(errs, field.TooLong(path, "", maxParametersSize))
	}
	return errs
}
