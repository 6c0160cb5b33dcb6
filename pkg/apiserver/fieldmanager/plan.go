package fieldmanager

import (
	"reflect"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// applyPlan is what an apply would do: the set of the fields that the configuration owns, and the edits that bring them
// into the live object. Planning changes nothing, so that the apply can still go to the library.
//
// The plan is a walk of its own, not a visitor: it walks decoded JSON beside Go values, in the configuration's order of
// list elements, and must find every part of the configuration that the library would treat specially.
//
// The plan treats the configuration as the library does when nothing conflicts: it sets the values that differ, adds
// the ones that are missing, and removes nothing. Removal needs the former configuration, which only the entries know,
// so applyEntries refuses plans that would need it.
type applyPlan struct {
	setWriter
	// touched are the paths of all values that the configuration changes or adds, without what is below a new one.
	// checkConflict compares them with the entries of other managers.
	touched []fieldpath.Path
	// edits change the live object, in this order. They cannot fail. The order matters for values of maps and new list
	// elements: their own edits change a copy, and a later edit puts the copy in place.
	edits []func()
	path  fieldpath.Path // of the value that is planned
}

// setting is a value of the configuration and its place in the live object.
type setting struct {
	want any
	// slot is the settable part of the live object. It is the zero Value below a part that is new, which one edit adds
	// with all that it contains.
	slot reflect.Value
	// absent: JSON omits the slot.
	absent bool
}

// planApply plans the apply of a configuration of t, a kind's type, to live, a settable struct or the zero Value for a
// new object.
func (t *typeNode) planApply(config map[string]any, live reflect.Value) (*applyPlan, error) {
	// 2 KiB hold the field set of a typical configuration, and paths are rarely deeper than 16, so neither buffer grows
	// in most applies.
	p := &applyPlan{setWriter: setWriter{out: make([]byte, 0, 2<<10)}, path: make(fieldpath.Path, 0, 16)}
	p.reset()
	if err := p.structure(t, config, live); err != nil {
		return nil, err
	}
	p.finish()
	return p, nil
}

// part plans one part and writes it as a member of the set. name is nil for values of maps and elements of lists, whose
// paths are in the set even if there is more below them.
func (p *applyPlan) part(t *typeNode, element fieldpath.PathElement, name []byte, s setting) (err error) {
	self := name == nil
	if self {
		if name, err = p.nameOf(element); err != nil {
			return err
		}
	}
	m := p.begin(name, self)
	p.path = append(p.path, element)
	owned, err := p.value(t, s)
	p.path = p.path[:len(p.path)-1]
	if err != nil {
		return err
	}
	p.end(m, owned || self)
	return nil
}

// value plans a value, and reports whether its own path is in the set if there is nothing below it.
//
// A slot that is missing or null needs care, because "absent", null and empty have different effects on ownership. The
// plan handles values that are not empty, and structs, and leaves the others to the library.
func (p *applyPlan) value(t *typeNode, s setting) (owned bool, err error) {
	if t.shape == atomic {
		return true, p.atomic(t, s)
	}
	slot := s.slot
	if slot.IsValid() && (s.absent || isNull(slot)) {
		if s.want == nil || t.shape != structure && length(reflect.ValueOf(s.want)) == 0 {
			return false, errNeedsLibrary // null and empty are different, except in a struct
		}
		// The struct is part of its parent and exists already, so only its fields are set. It still counts as touched,
		// since its JSON appears.
		if slot.Kind() == reflect.Struct {
			p.touch()
		} else {
			if err := p.put(s.want, slot); err != nil {
				return false, err
			}
			slot = reflect.Value{} // put sets all that is below
		}
	}
	slot = deref(slot)
	switch want := s.want.(type) {
	case map[string]any:
		if t.shape == structure {
			if len(want) == 0 && len(t.unowned) > 0 {
				return false, errNeedsLibrary // nobody owns empty metadata; other empty structs are owned
			}
			return len(want) == 0, p.structure(t, want, slot)
		}
		if t.shape == granularMap {
			return len(want) == 0, p.granularMap(t, want, slot)
		}
	case []any:
		if t.shape == keyedList || t.shape == setList {
			return false, p.list(t, want, slot)
		}
	}
	return false, errNeedsLibrary
}

func (p *applyPlan) structure(t *typeNode, want map[string]any, slot reflect.Value) error {
	// Every field of the configuration must be found in t; the sum below shows whether one is missing.
	known := 0
	for i := range t.fields {
		f := &t.fields[i]
		v, ok := want[f.entry.JsonName]
		if !ok {
			continue
		}
		known++
		in, absent, err := settable(f.entry, slot)
		if err != nil {
			return err
		}
		if err := p.part(f.typeNode, f.element, f.name, setting{v, in, absent}); err != nil {
			return err
		}
	}
	for _, a := range t.unowned {
		v, ok := want[a.entry.JsonName]
		if !ok {
			continue
		}
		known++
		if err := p.unowned(a.entry, v, slot); err != nil {
			return err
		}
	}
	if known != len(want) {
		return errNeedsLibrary // unknown fields
	}
	return nil
}

// unowned plans a field that no manager owns. A configuration may still set it.
//
// Typical are apiVersion, kind, metadata.name and metadata.namespace, which every configuration has and which are the
// same in the live object. Another value gets an edit like any other field, and the registry judges the result: a
// resourceVersion becomes a precondition, a different uid a conflict.
func (p *applyPlan) unowned(entry *value.FieldCacheEntry, want any, slot reflect.Value) error {
	if entry.JsonName == "managedFields" {
		return errNeedsLibrary
	}
	switch want := want.(type) {
	case map[string]any:
		if t := entry.TypeEntry; len(want) > 0 || t.Fields() == nil || t.CanConvertToUnstructured() {
			return errNeedsLibrary
		}
		return nil // an empty struct changes nothing
	case []any, nil: // null leaves a struct unchanged, and resets other values
		return errNeedsLibrary
	}
	in, absent, err := settable(entry, slot)
	if err != nil {
		return err
	}
	p.path = append(p.path, fieldpath.PathElement{FieldName: &entry.JsonName})
	err = p.atomic(&typeNode{}, setting{want, in, absent})
	p.path = p.path[:len(p.path)-1]
	return err
}

// granularMap plans the values of a map by their keys, which is the order of the set.
//
// Go does not let code set a map's value in place. The plan edits a copy of the value, and one more edit puts the copy
// into the map. Values with parts go to the library.
func (p *applyPlan) granularMap(t *typeNode, want map[string]any, live reflect.Value) error {
	keys := make([]string, 0, len(want))
	for key := range want {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		element := fieldpath.PathElement{FieldName: &key}
		if !live.IsValid() {
			if err := p.part(t.element, element, nil, setting{want: want[key]}); err != nil {
				return err
			}
			continue
		}
		if t.element.shape != atomic {
			return errNeedsLibrary // values of Go maps cannot be set in place
		}
		k, slot := reflect.ValueOf(key).Convert(live.Type().Key()), reflect.New(live.Type().Elem()).Elem()
		has, before := live.MapIndex(k), len(p.edits)
		if has.IsValid() {
			slot.Set(has)
		}
		if err := p.part(t.element, element, nil, setting{want[key], slot, !has.IsValid()}); err != nil {
			return err
		}
		if len(p.edits) > before { // they edit the copy
			p.edits = append(p.edits, func() { live.SetMapIndex(k, slot) })
		}
	}
	return nil
}

// configElement is an element of a list in a configuration, with its slot in the live list.
type configElement struct {
	listElement
	config any
}

// list plans the elements of a list. Existing elements keep their positions, so the configuration must have them in the
// same order, and new ones after them: then they can be appended. Any other order needs the library's merge.
//
// The set needs the elements in the order of their path elements, and the list keeps the order of the configuration, so
// the two orders are kept apart: added has the new elements as the configuration orders them.
func (p *applyPlan) list(t *typeNode, want []any, live reflect.Value) error {
	elements, added, err := p.matchElements(t, want, live)
	if err != nil {
		return err
	}
	// The configuration's order is in added and in the live list. From here on only the set's order matters.
	slices.SortFunc(elements, func(a, b configElement) int { return a.element.Compare(b.element) })
	for i := range elements {
		e := &elements[i]
		if err := p.part(t.element, e.element, nil, setting{want: e.config, slot: e.value}); err != nil {
			return err
		}
	}
	if len(added) > 0 {
		p.edits = append(p.edits, func() { live.Set(reflect.Append(live, added...)) })
	}
	return nil
}

// matchElements finds the elements of a configuration in the live list by their keys, and makes those that it lacks.
//
// At most maxElements elements are compared, each with all keys before it. Elements without a key and duplicates are
// errors, which the library words.
func (p *applyPlan) matchElements(
	t *typeNode, want []any, live reflect.Value,
) (elements []configElement, added []reflect.Value, err error) {
	if len(want) > maxElements {
		return nil, nil, errNeedsLibrary
	}
	has, err := t.elementKeys(live)
	if err != nil {
		return nil, nil, err
	}
	elements, keys := make([]configElement, len(want)), make([]string, len(want))
	last := -1
	for i, config := range want {
		values, err := t.configKeyValues(config)
		if err != nil {
			return nil, nil, err
		}
		if keys[i] = t.joinKey(values); keys[i] == "" || slices.Contains(keys[:i], keys[i]) {
			return nil, nil, errNeedsLibrary
		}
		e := configElement{listElement{element: t.keyElement(values)}, config}
		at := indexOf(has, keys[i], i)
		switch {
		case at >= 0:
			// An existing element after a new one, or two existing elements the other way round: the library would move
			// elements.
			if at <= last || len(added) > 0 {
				return nil, nil, errNeedsLibrary // another order
			}
			last, e.value = at, live.Index(at)
		// Without a live list the parent is new, and one edit adds it with all of its elements.
		case live.IsValid():
			slot := reflect.New(live.Type().Elem()).Elem()
			p.path = append(p.path, e.element)
			err := p.put(config, slot)
			p.path = p.path[:len(p.path)-1]
			if err != nil {
				return nil, nil, err
			}
			added = append(added, slot)
		}
		elements[i] = e
	}
	return elements, added, nil
}

// touch notes that the value at the current path changes.
func (p *applyPlan) touch() { p.touched = append(p.touched, p.path.Copy()) }

// put plans to set a slot. It decodes the value now, because edits cannot fail.
func (p *applyPlan) put(want any, slot reflect.Value) error {
	p.touch()
	// A value that does not fit the type ends the plan here, while the live object is still as it was.
	v := reflect.New(slot.Type())
	if err := decodeInto(v, want); err != nil {
		return err
	}
	p.edits = append(p.edits, func() { slot.Set(v.Elem()) })
	return nil
}

// settable returns a field of a struct that can be set, and whether JSON omits it. The field of no struct is none.
func settable(entry *value.FieldCacheEntry, of reflect.Value) (slot reflect.Value, absent bool, err error) {
	if !of.IsValid() {
		return of, false, nil
	}
	if slot = entry.GetFrom(of); !slot.CanSet() {
		return slot, false, errNeedsLibrary
	}
	return slot, entry.CanOmit(slot), nil
}
