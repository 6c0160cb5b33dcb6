package structural

import (
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ValidateLists returns the duplicates in lists that are sets or maps (x-kubernetes-list-type).
//
// Server-side apply relies on it: with duplicates, a path in managedFields would name two items. An update that finds
// duplicates in the old object as well is let through (customresource.newDuplicates).
func (s *Schema) ValidateLists(path *field.Path, v any) field.ErrorList {
	if !s.below.unique && !s.unique() {
		return nil
	}
	var errs field.ErrorList
	switch v := v.(type) {
	case map[string]any:
		for _, m := range s.members {
			if value, ok := v[m.name]; ok {
				errs = append(errs, m.schema.ValidateLists(path.Child(m.name), value)...)
			}
		}
		if a := s.additional; a != nil && (a.unique() || a.below.unique) {
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if _, ok := s.properties[name]; !ok {
					errs = append(errs, a.ValidateLists(path.Key(name), v[name])...)
				}
			}
		}
	case []any:
		switch s.listType {
		case "set":
			errs = duplicates(v, path, func(item any) any { return item })
		case "map":
			// The first such item ends the check of this list, since there are no keys to compare.
			if i := slices.IndexFunc(v, noObject); i >= 0 {
				errs = field.ErrorList{field.Invalid(path.Index(i), v[i],
					"must be an object for an array of list-type map")}
			} else {
				errs = duplicates(v, path, s.keysOf)
			}
		}
		if s.items != nil {
			for i, item := range v {
				errs = append(errs, s.items.ValidateLists(path.Index(i), item)...)
			}
		}
	}
	return errs
}

// null is left to Validate.
func noObject(item any) bool {
	_, ok := item.(map[string]any)
	return !ok && item != nil
}

// keysOf returns the fields that identify an item of a list of type map; nil for an item that is no object. A missing
// key stays missing, so two items without it are duplicates. Defaults have been set by then.
func (s *Schema) keysOf(item any) any {
	obj, ok := item.(map[string]any)
	if !ok {
		return nil
	}
	keys := make(map[string]any, len(s.listMapKeys))
	for _, k := range s.listMapKeys {
		if v, ok := obj[k]; ok {
			keys[k] = v
		}
	}
	return keys
}

// duplicates returns one error per key that several items have, at the second of them. It takes time and memory in
// proportion to the list. An item that occurs three times is reported once.
func duplicates(list []any, path *field.Path, key func(any) any) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[string]int, len(list))
	for i, item := range list {
		k := key(item)
		if k == nil {
			continue
		}
		text := canonical(k)
		if seen[text]++; seen[text] == 2 {
			errs = append(errs, field.Duplicate(path.Index(i), k))
		}
	}
	return errs
}

// canonical returns a text that is the same for equal values. encoding/json sorts the keys of maps. A string needs no
// encoding: no other value's JSON begins with a quote.
func canonical(v any) string {
	if text, ok := v.(string); ok {
		return `"` + text
	}
	raw, err := json.Marshal(v)
	if err != nil { // no JSON: such a value cannot be stored
		return ""
	}
	return string(raw)
}
