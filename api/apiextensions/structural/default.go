package structural

// HasDefaults reports whether SetDefaults ever changes an object.
func (s *Schema) HasDefaults() bool { return s.below.defaults }

// SetDefaults sets the defaults of s in v, in place, where v has no value, or null and s does not allow it. It is
// idempotent.
//
// It runs on every read from storage too, so objects that are older than a default also have it. The rules are
// upstream's: a default is set before the walk goes below it, so defaults inside a default apply as well; and null
// counts as missing only where the schema forbids it. Prune has to run first, because it drops other nulls.
func (s *Schema) SetDefaults(v any) {
	if !s.below.defaults {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, m := range s.members {
			value, there := v[m.name]
			if m.schema.hasFallback && (!there || value == nil && !m.schema.nullable) {
				value = m.schema.defaultValue()
				v[m.name] = value
			}
			if value != nil {
				m.schema.SetDefaults(value)
			}
		}
		if s.additional == nil {
			return
		}
		// Maps have no missing values, so only null can be replaced. Writing to an existing key during the iteration is
		// safe in Go.
		for name, value := range v {
			if _, ok := s.properties[name]; ok {
				continue
			}
			if value == nil && !s.additional.nullable && s.additional.hasFallback {
				value = s.additional.defaultValue()
				v[name] = value
			}
			s.additional.SetDefaults(value)
		}
	case []any:
		if s.items == nil {
			return
		}
		for i := range v {
			if v[i] == nil && !s.items.nullable && s.items.hasFallback {
				v[i] = s.items.defaultValue()
			}
			s.items.SetDefaults(v[i])
		}
	}
}
