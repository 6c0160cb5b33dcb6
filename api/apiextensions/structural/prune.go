package structural

import (
	"slices"
	"strconv"
)

// Prune drops from an object, in place, the fields that s does not know, and nulls that s does not allow and has no
// default for. apiVersion, kind and metadata stay, here and in embedded resources. It returns the sorted paths of the
// unknown fields as clients see them: "spec.x[0].y".
//
// It runs for every object that a client sends and for every one that comes from storage or from a conversion webhook.
// The names of unknown fields go to the client as warnings or, with strict field validation, as an error.
func (s *Schema) Prune(obj map[string]any) []string {
	p := pruner{}
	p.object(s, obj, true, s.keeps, nil)
	if s.below.nulls {
		s.dropNulls(obj)
	}
	slices.Sort(p.unknown)
	return p.unknown
}

// pruner gathers the paths of the fields that it drops.
type pruner struct{ unknown []string }

// value prunes v by s; a nil s knows no fields. keep: unknown fields of v stay, as if s preserved them.
//
// A preserved value has no unknown fields, and its known ones are pruned by their own schemas. keep is handed on to the
// items of lists only: below a known field, that field's schema decides.
func (p *pruner) value(s *Schema, v any, keep bool, at *valuePath) {
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
			at := valuePath{parent: at, index: i, isIndex: true}
			p.value(s.items, v[i], keep, &at) // keep holds for the items of a list
		}
	}
}

// object prunes obj by s. root: obj is an object or an embedded resource, whose apiVersion, kind and metadata stay.
// keep: unknown fields of obj stay. Its known fields are pruned all the same.
func (p *pruner) object(s *Schema, obj map[string]any, root, keep bool, at *valuePath) {
	// Deleting during the iteration is safe in Go. The order is random, so Prune sorts the paths.
	for name, v := range obj {
		if root && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		below := s.field(name)
		known := below != nil || s.additionalAllowed
		switch { // each case makes its own path: most values need none, and it is allocated
		case known && isComposed(v):
			// additionalProperties: true has no schema: any value is allowed, and it has no known fields.
			at := valuePath{parent: at, name: name}
			p.value(below, v, false, &at)
		case !known && !keep:
			at := valuePath{parent: at, name: name}
			p.unknown = append(p.unknown, at.String())
			delete(obj, name)
		}
	}
}

// isComposed reports whether a value has parts that can be pruned.
func isComposed(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// dropNulls drops the fields that are null although s neither allows it nor has a default.
//
// A null with a default is left for SetDefaults to replace. The rule is upstream's (documentation on custom resources,
// "Defaulting and Nullable"). Items of lists stay, because dropping one would move the others.
func (s *Schema) dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			below := s.field(name)
			switch {
			case below == nil:
			case value == nil && !below.nullable && !below.hasFallback:
				delete(v, name)
			case below.below.nulls:
				below.dropNulls(value)
			}
		}
	case []any:
		if s.items != nil && s.items.below.nulls {
			for _, item := range v {
				s.items.dropNulls(item)
			}
		}
	}
}

// field returns the schema of an object's field or of a map's value; nil for none.
func (s *Schema) field(name string) *Schema {
	if below := s.Property(name); below != nil {
		return below
	}
	return s.additional
}

// valuePath is the path of a value. Walks make one on the way, and need it as text only for what they report.
//
// Chaining to the parent costs less than making text at every level.
type valuePath struct {
	parent  *valuePath
	name    string
	index   int
	isIndex bool
}

// String returns the path in the form "spec.list[0].name".
func (p *valuePath) String() string {
	if p == nil {
		return ""
	}
	return string(p.append(nil))
}

func (p *valuePath) append(b []byte) []byte {
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
