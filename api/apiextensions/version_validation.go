package apiextensions

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const notSimple = "must be a simple json path starting with ."

// statusRoot are the fields that a schema may have at its root if the status subresource is enabled, by their names in
// Go. The error prints the list, in this order.
var statusRoot = [...]string{"Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum",
	"ExclusiveMinimum", "MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems",
	"UniqueItems", "MultipleOf", "Required", "Items", "Properties", "ExternalDocs", "Example", "XPreserveUnknownFields",
	"XValidations"}

// validateStatusRoot restricts the root of a schema whose objects have a status subresource. What the root says holds
// for writes of the status and of everything else alike.
func validateStatusRoot(s *apiextensionsv1.JSONSchemaProps, path *field.Path) field.ErrorList {
	if s.Type != "" && s.Type != "object" {
		return field.ErrorList{field.Invalid(path.Child("type"), s.Type,
			`only "object" is allowed as the type at the root of the schema if the status subresource is enabled`)}
	}
	rest := *s
	for _, name := range statusRoot {
		// What is not zero at the end is a field that is not allowed, even one that a later version of the type adds.
		reflect.ValueOf(&rest).Elem().FieldByName(name).SetZero()
	}
	if !reflect.DeepEqual(rest, apiextensionsv1.JSONSchemaProps{}) {
		return field.ErrorList{field.Invalid(path, s,
			fmt.Sprintf("only %v fields are allowed at the root of the schema if the status subresource is enabled",
				statusRoot))}
	}
	return nil
}

// The paths of scale are plain: the server reads them with a lookup of nested fields, and not with a JSONPath engine.
func validateSubresources(s *apiextensionsv1.CustomResourceSubresources, path *field.Path) field.ErrorList {
	if s == nil || s.Scale == nil {
		return nil
	}
	var errs field.ErrorList
	at := path.Child("scale")
	check := func(text string, needed bool, at *field.Path, message string, below ...string) {
		switch {
		case text == "" && needed:
			errs = append(errs, field.Required(at, ""))
		case text == "":
		case !strings.HasPrefix(text, "."):
			errs = append(errs, field.Invalid(at, text, notSimple))
		case !slices.ContainsFunc(below, func(b string) bool { return strings.HasPrefix(text, b) }):
			errs = append(errs, field.Invalid(at, text, message))
		}
	}
	check(s.Scale.SpecReplicasPath, true, at.Child("specReplicasPath"), "should be a json path under .spec", ".spec.")
	check(s.Scale.StatusReplicasPath, true, at.Child("statusReplicasPath"), "should be a json path under .status",
		".status.")
	if p := s.Scale.LabelSelectorPath; p != nil {
		check(*p, false, at.Child("labelSelectorPath"), "should be a json path under either .spec or .status", ".spec.",
			".status.")
	}
	return errs
}

func validateColumn(c *apiextensionsv1.CustomResourceColumnDefinition, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	types, formats := []string{"boolean", "date", "integer", "number", "string"},
		[]string{"byte", "date", "date-time", "double", "float", "int32", "int64", "password"}
	if c.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), "must be one of "+strings.Join(types, ",")))
	} else if !slices.Contains(types, c.Type) {
		errs = append(errs, field.Invalid(path.Child("type"), c.Type, "must be one of "+strings.Join(types, ",")))
	}
	if c.Format != "" && !slices.Contains(formats, c.Format) {
		errs = append(errs, field.Invalid(path.Child("format"), c.Format, "must be one of "+strings.Join(formats, ",")))
	}
	if c.JSONPath == "" {
		errs = append(errs, field.Required(path.Child("JSONPath"), ""))
	} else if !strings.HasPrefix(c.JSONPath, ".") {
		errs = append(errs, field.Invalid(path.Child("JSONPath"), c.JSONPath, notSimple))
	}
	return errs
}

// maxSelectable is upstream's bound on the fields that objects of a version can be selected by. Each is read from every
// object that a list with a field selector looks at.
const maxSelectable = 8

// Only valid paths count for duplicates and for the bound.
func validateSelectable(v *version, path *field.Path) field.ErrorList {
	fields := v.SelectableFields
	if len(fields) == 0 {
		return nil
	}
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, f := range fields {
		at := path.Index(i).Child("jsonPath")
		if f.JSONPath == "" {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		if message := selectable(v, f.JSONPath); message != "" {
			errs = append(errs, field.Invalid(at, f.JSONPath, message))
			continue
		}
		if seen[f.JSONPath] {
			errs = append(errs, field.Duplicate(at, f.JSONPath))
		}
		seen[f.JSONPath] = true
	}
	if len(seen) > maxSelectable {
		errs = append(errs, field.TooMany(path, len(seen), maxSelectable))
	}
	return errs
}

// selectable returns why objects cannot be selected by the value at path, "" if they can. The schema must give the
// value a scalar type, since selectors compare strings.
func selectable(v *version, path string) string {
	const invalid = "is an invalid path: "
	switch {
	case path[0] != '.' && path[0] != '[':
		first, _, _ := strings.Cut(path, ".")
		first, _, _ = strings.Cut(first, "[")
		return invalid + "expected [ or . but got: " + first
	case path == ".":
		return invalid + "unexpected end of JSON path"
	case strings.Contains(path, "["):
		return invalid + "array notation is not allowed"
	}
	p, names := v.Schema.OpenAPIV3Schema, strings.Split(path[1:], ".")
	for i, name := range names {
		if name == "" && i > 0 && i == len(names)-1 {
			return invalid + "unexpected end of JSON path"
		}
		below, ok := p.Properties[name]
		if a := p.AdditionalProperties; !ok && a != nil && a.Schema != nil {
			below, ok = *a.Schema, true
		}
		if !ok || i == 0 && (name == "metadata" || name == "apiVersion" || name == "kind") {
			return invalid + "does not refer to a valid field"
		}
		p = &below
	}
	switch p.Type {
	case "string", "boolean", "integer":
		return ""
	}
	return "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
}
