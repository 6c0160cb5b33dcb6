package structural

import (
	"slices"
	"strconv"
)

// Prune drops from an object, in place, what s does not know, and the nulls where s allows none and has no default. apiVersion,
// kind and metadata stay, here and in embedded resources. It returns the paths of the unknown fields as clients are told them
// ("spec.x[0].y"), sorted.
func (s *Schema) Prune(obj map[string]any) []string {
	p := pruner{}
	p.object(s, obj, true, s.keeps, nil)
	if s.nullsBelow {
		s.dropNulls(obj)
	}
	slices.Sort(p.unknown)
	return p.unknown
}

// pruner gathers the paths of what it drops.
type pruner struct{ unknown []string }

// value prunes v by s; a nil s knows nothing. keep: unknown fields of v stay, as where s says so itself.
func (p *pruner) value(s *Schema, v any, keep bool, at *place) {
	if s == nil {
		s = &Schema{}
	}
	keep = keep || s.keeps
	switch v := v.(type) {
	case map[string]any:
		p.object(s, v, s.embedded, keep, at)
	case []any:
		if s.items == nil && keep {
			return
		}
		for i := range v {
			at := place{parent: at, index: i, isIndex: true}
			p.value(s.items, v[i], keep, &at) // a list keeps for its items
		}
	}
}

// object prunes obj by s; at its root, of the whole or of an embedded resource, apiVersion, kind and metadata stay. keep: unknown fields stay, but
// what s says of the known ones holds.
func (p *pruner) object(s *Schema, obj map[string]any, root, keep bool, at *place) {
	for name, v := range obj {
		if root && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		if below, ok := s.properties[name]; ok {
			if isComposed(v) {
				at := place{parent: at, name: name}
				p.value(below.(*Schema), v, false, &at)
			}
			continue
		}
		switch {
		case s.additional != nil:
			if isComposed(v) {
				at := place{parent: at, name: name}
				p.value(s.additional, v, false, &at)
			}
		case s.additionalAllowed: // of any kind, and with nothing in it that is known
			if isComposed(v) {
				at := place{parent: at, name: name}
				p.value(nil, v, false, &at)
			}
		case !keep:
			at := place{parent: at, name: name}
			p.unknown = append(p.unknown, at.String())
			delete(obj, name)
		}
	}
}

func isComposed(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// dropNulls drops the fields that are null where s neither allows it nor has a default.
func (s *Schema) dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			below := s.field(name)
			switch {
			case below == nil:
			case value == nil && !below.nullable && !below.hasFallback:
				delete(v, name)
			case below.nullsBelow:
				below.dropNulls(value)
			}
		}
	case []any:
		if s.items != nil && s.items.nullsBelow {
			for _, item := range v {
				s.items.dropNulls(item)
			}
		}
	}
}

// field is the schema of an object's field; nil for none.
func (s *Schema) field(name string) *Schema {
	if below, ok := s.properties[name]; ok {
		return below.(*Schema)
	}
	return s.additional
}

// place is a path to a value, kept on the stack until somebody wants to read it.
type place struct {
	parent  *place
	name    string
	index   int
	isIndex bool
}

// String is "spec.list[0].name".
func (p *place) String() string {
	if p == nil {
		return ""
	}
	return string(p.append(nil))
}

func (p *place) append(b []byte) []byte {
	if p.parent != nil {
		b = p.parent.append(b)
	}
	if p.isIndex {
		return append(strconv.AppendInt(append(b, '['), int64(p.index), 10), ']')
	}
	if p.parent != nil {
		b = append(b, '.')
	}
	return append(b, p.name...)
}
