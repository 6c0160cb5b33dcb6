package patch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// changes is what a merge patch says of the members of an object, in the order of their names.
type changes []change

// change is what it says of one: it goes, if value is nil; or it becomes value, or what parts make of it if it is an
// object and so is value.
type change struct {
	name   string
	value  []byte
	object bool
	parts  changes
	// nulls tells that null is somewhere in value, which does not get into a document that way.
	nulls bool
}

// readChanges reads an object of a merge patch.
func readChanges(patch []byte) (changes, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(patch, &members); err != nil {
		return nil, fmt.Errorf("error decoding patch: %w", err)
	}
	out := make(changes, 0, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		c := change{name: name, value: bytes.TrimSpace(members[name])}
		switch c.value[0] {
		case 'n':
			c.value = nil
		case '{':
			parts, err := readChanges(c.value)
			if err != nil {
				return nil, err
			}
			c.object, c.parts = true, parts
		}
		c.nulls = bytes.Contains(c.value, []byte("null"))
		out = append(out, c)
	}
	return out, nil
}

// splice appends doc, an object, with the changes; it copies members that they do not name as they are. ok is false if
// splicing is not safe: doc is not the compact JSON that encoders write, a name has escapes, or a value has nulls to be
// left out.
func (all changes) splice(out, doc []byte) (_ []byte, ok bool) {
	if len(doc) < 2 || doc[0] != '{' || doc[len(doc)-1] != '}' {
		return out, false
	}
	met := make([]bool, len(all))
	out = append(out, '{')
	first := len(out)
	begin := func() {
		if len(out) > first {
			out = append(out, ',')
		}
	}
	for from := 1; doc[from] != '}'; {
		colon := endOfValue(doc, from)
		if doc[from] != '"' || colon < 0 || doc[colon] != ':' || colon+1 >= len(doc) {
			return out, false
		}
		name, to := doc[from+1:colon-1], endOfValue(doc, colon+1)
		if to <= colon+1 || bytes.IndexByte(name, '\\') >= 0 {
			return out, false
		}
		i, changed := slices.BinarySearchFunc(all, name, func(c change, name []byte) int {
			return bytes.Compare([]byte(c.name), name)
		})
		switch {
		case !changed:
			begin()
			out = append(out, doc[from:to]...)
		case met[i]: // twice
			return out, false
		case all[i].value != nil:
			begin()
			out = append(out, doc[from:colon+1]...)
			if out, ok = all[i].on(out, doc[colon+1:to]); !ok {
				return out, false
			}
		}
		if changed {
			met[i] = true
		}
		switch {
		case doc[to] == ',' && doc[to+1] == '"':
			from = to + 1
		case doc[to] == '}' && to == len(doc)-1:
			from = to
		default:
			return out, false
		}
	}
	for i := range all {
		c := &all[i]
		if met[i] || c.value == nil {
			continue
		}
		if c.nulls {
			return out, false
		}
		quoted, err := json.Marshal(c.name)
		if err != nil {
			return out, false
		}
		begin()
		out = append(append(append(out, quoted...), ':'), c.value...)
	}
	return append(out, '}'), true
}

// on appends what c makes of a value.
func (c *change) on(out, value []byte) ([]byte, bool) {
	switch {
	case c.object && value[0] == '{':
		return c.parts.splice(out, value)
	case c.nulls:
		return out, false
	}
	return append(out, c.value...), true
}
