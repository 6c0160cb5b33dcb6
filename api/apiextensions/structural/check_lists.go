package structural

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkListType checks x-kubernetes-list-type and x-kubernetes-list-map-keys.
//
// The list type tells server-side apply how to merge (KEP-555): "atomic" replaces the list as a whole, "set" merges
// values, "map" merges items with the same keys. Without items there is no schema to check the type against.
func checkListType(p *props, path *field.Path) field.ErrorList {
	listType := deref(p.XListType)
	errs := checkListKeywords(p, path)
	if p.Items == nil || p.Items.Schema == nil {
		if listType == "map" {
			errs = append(errs, field.Required(path.Child("items"),
				"must have a schema if x-kubernetes-list-type is map"))
			errs = append(errs, checkHasMapKeys(p, path)...)
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

// checkListKeywords checks that both keywords fit the type and each other.
//
// The second rule is independent of the first: keys without a list type, or with another type than map, are an error of
// their own.
func checkListKeywords(p *props, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at, listType := path.Child("x-kubernetes-list-type"), deref(p.XListType)
	if p.XListType != nil {
		errs = append(errs, mustBe(p, path, "array", "must be array if x-kubernetes-list-type is specified")...)
		if known := []string{"atomic", "set", "map"}; !slices.Contains(known, listType) {
			errs = append(errs, field.NotSupported(at, listType, known))
		}
	}
	const message = "must be map if x-kubernetes-list-map-keys is non-empty"
	switch {
	case len(p.XListMapKeys) == 0:
	case p.XListType == nil:
		errs = append(errs, field.Required(at, message))
	case listType != "map":
		errs = append(errs, field.Invalid(at, listType, message))
	}
	return errs
}

func checkHasMapKeys(p *props, path *field.Path) field.ErrorList {
	if len(p.XListMapKeys) > 0 {
		return nil
	}
	return field.ErrorList{field.Required(path.Child("x-kubernetes-list-map-keys"),
		"must not be empty if x-kubernetes-list-type is map")}
}

// checkSetItems checks the items of a set. They are compared as a whole, so composed items must be atomic.
//
// An item that is itself a list or a map could otherwise be merged part by part, while its identity in the set is its
// whole value. null is no value that a set can contain.
func checkSetItems(items *props, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if items.Nullable {
		errs = append(errs, field.Forbidden(path.Child("nullable"),
			"cannot be nullable when x-kubernetes-list-type is set"))
	}
	const message = "must be atomic as item of a list with x-kubernetes-list-type=set"
	switch items.Type {
	case "array":
		if t := items.XListType; t != nil && *t != "atomic" {
			errs = append(errs, field.Invalid(path.Child("x-kubernetes-list-type"), *t, message))
		}
	case "object":
		if t := items.XMapType; t == nil || *t != "atomic" {
			errs = append(errs, field.Invalid(path.Child("x-kubernetes-map-type"), t, message))
		}
	}
	return errs
}

// checkMapKeys checks the keys that identify the items of a list with x-kubernetes-list-type=map.
//
// Keys must be scalars that every item has: they become part of a field path in managedFields (k:{"port":80}), and
// server-side apply finds an item by them alone. The errors are in upstream's order.
func checkMapKeys(p *props, path *field.Path) field.ErrorList {
	items, at := p.Items.Schema, path.Child("items")
	errs := checkHasMapKeys(p, path)
	if items.Nullable {
		errs = append(errs, field.Forbidden(at.Child("nullable"),
			"cannot be nullable when x-kubernetes-list-type is map"))
	}
	for _, key := range p.XListMapKeys {
		errs = append(errs, checkKeyPresent(items, key, at.Child("properties").Key(key))...)
	}
	if items.Type != "object" {
		return append(errs, field.Invalid(at.Child("type"), items.Type,
			"must be object if parent array's x-kubernetes-list-type is map"))
	}
	seen, keysAt := map[string]bool{}, path.Child("x-kubernetes-list-map-keys")
	for _, key := range p.XListMapKeys {
		if seen[key] {
			errs = append(errs, field.Invalid(keysAt, p.XListMapKeys, "must not contain duplicate entries"))
		}
		seen[key] = true
		property, ok := items.Properties[key]
		if !ok {
			errs = append(errs, field.Invalid(keysAt, p.XListMapKeys, "entries must all be names of item properties"))
			continue
		}
		if property.Type == "array" || property.Type == "object" {
			// Kubernetes reports the type of the items here, not that of the property.
			errs = append(errs, field.Invalid(at.Child("properties").Key(key).Child("type"), items.Type,
				"must be a scalar type if parent array's x-kubernetes-list-type is map"))
		}
	}
	return errs
}

// checkKeyPresent checks that every item has a key, by itself or by a default.
//
// A default serves as well as a requirement, because the server sets defaults before it looks for duplicates.
func checkKeyPresent(items *props, key string, path *field.Path) field.ErrorList {
	property, ok := items.Properties[key]
	if !ok {
		return nil // checkMapKeys reports it
	}
	var errs field.ErrorList
	if property.Default == nil && !slices.Contains(items.Required, key) {
		errs = append(errs, field.Required(path.Child("default"), "this property is in x-kubernetes-list-map-keys, "+
			"so it must have a default or be a required property"))
	}
	if property.Nullable {
		errs = append(errs, field.Forbidden(path.Child("nullable"),
			"this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
	}
	return errs
}
