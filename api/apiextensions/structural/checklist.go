package structural

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkListType checks x-kubernetes-list-type and x-kubernetes-list-map-keys.
func checkListType(p *props, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	listType := ""
	if p.XListType != nil {
		listType = *p.XListType
		errs = append(errs, mustBe(p, path, "array", "must be array if x-kubernetes-list-type is specified")...)
		if !slices.Contains([]string{"atomic", "set", "map"}, listType) {
			errs = append(errs, field.NotSupported(path.Child("x-kubernetes-list-type"), listType, []string{"atomic", "set", "map"}))
		}
	}
	if len(p.XListMapKeys) > 0 {
		if p.XListType == nil {
			errs = append(errs, field.Required(path.Child("x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty"))
		} else if listType != "map" {
			errs = append(errs, field.Invalid(path.Child("x-kubernetes-list-type"), listType, "must be map if x-kubernetes-list-map-keys is non-empty"))
		}
	}
	if p.Items == nil || p.Items.Schema == nil {
		if listType == "map" {
			errs = append(errs, field.Required(path.Child("items"), "must have a schema if x-kubernetes-list-type is map"))
		}
		if listType == "map" && len(p.XListMapKeys) == 0 {
			errs = append(errs, field.Required(path.Child("x-kubernetes-list-map-keys"), "must not be empty if x-kubernetes-list-type is map"))
		}
		return errs
	}
	switch listType {
	case "set":
		errs = append(errs, checkSetItems(p.Items.Schema, path.Child("items"))...)
	case "map":
		errs = append(errs, checkMapKeys(p, path)...)
	}
	return errs
}

// checkSetItems: what can be compared as a whole may stand in a set.
func checkSetItems(items *props, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if items.Nullable {
		errs = append(errs, field.Forbidden(path.Child("nullable"), "cannot be nullable when x-kubernetes-list-type is set"))
	}
	switch items.Type {
	case "array":
		if t := items.XListType; t != nil && *t != "atomic" {
			errs = append(errs, field.Invalid(path.Child("x-kubernetes-list-type"), *t, "must be atomic as item of a list with x-kubernetes-list-type=set"))
		}
	case "object":
		if t := items.XMapType; t == nil || *t != "atomic" {
			errs = append(errs, field.Invalid(path.Child("x-kubernetes-map-type"), t, "must be atomic as item of a list with x-kubernetes-list-type=set"))
		}
	}
	return errs
}

// checkMapKeys checks the fields by which a list that is a map tells its items apart.
func checkMapKeys(p *props, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	items, at := p.Items.Schema, path.Child("items")
	if len(p.XListMapKeys) == 0 {
		errs = append(errs, field.Required(path.Child("x-kubernetes-list-map-keys"), "must not be empty if x-kubernetes-list-type is map"))
	}
	if items.Nullable {
		errs = append(errs, field.Forbidden(at.Child("nullable"), "cannot be nullable when x-kubernetes-list-type is map"))
	}
	for _, key := range p.XListMapKeys {
		own, keyAt := items.Properties[key], at.Child("properties").Key(key)
		if _, ok := items.Properties[key]; ok && own.Default == nil && !slices.Contains(items.Required, key) {
			errs = append(errs, field.Required(keyAt.Child("default"), "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"))
		}
		if own.Nullable {
			errs = append(errs, field.Forbidden(keyAt.Child("nullable"), "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
		}
	}
	if items.Type != "object" {
		return append(errs, field.Invalid(at.Child("type"), items.Type, "must be object if parent array's x-kubernetes-list-type is map"))
	}
	seen := map[string]bool{}
	for _, key := range p.XListMapKeys {
		if seen[key] {
			errs = append(errs, field.Invalid(path.Child("x-kubernetes-list-map-keys"), p.XListMapKeys, "must not contain duplicate entries"))
		}
		seen[key] = true
		own, ok := items.Properties[key]
		if !ok {
			errs = append(errs, field.Invalid(path.Child("x-kubernetes-list-map-keys"), p.XListMapKeys, "entries must all be names of item properties"))
			continue
		}
		keyAt := at.Child("properties").Key(key)
		if own.Type == "array" || own.Type == "object" {
			errs = append(errs, field.Invalid(keyAt.Child("type"), items.Type, "must be a scalar type if parent array's x-kubernetes-list-type is map"))
		}
	}
	return errs
}
