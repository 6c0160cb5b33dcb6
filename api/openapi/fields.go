package openapi

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// fields adds the properties of struct t to s; those of embedded structs become s's own.
func (b *Builder) fields(s *spec.Schema, t reflect.Type) {
	docs := b.describe(t)
	for f := range fieldsOf(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" {
			if inner := deref(f.Type); f.Anonymous && inner.Kind() == reflect.Struct {
				b.fields(s, inner)
			}
			continue
		}
		key := typeKey(t) + ":" + name
		p := b.schemaOf(f.Type)
		omit := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		p = b.annotate(p, t, f, key, b.marks.description(key, docs[name]), omit)
		s.Properties[name] = p
		if b.marks.flag(key, "required") || !omit && !b.marks.flag(key, "optional") {
			s.Required = append(s.Required, name)
		}
	}
}

// fieldsOf yields the exported fields.
func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() || f.Anonymous {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// annotate adds what belongs to the field f of a type and not to the field's own; omit tells that JSON leaves its zero
// value out.
func (b *Builder) annotate(p spec.Schema, of reflect.Type, f reflect.StructField, key, doc string,
	omit bool) spec.Schema {
	// what upstream generates says it or leaves it out
	if _, described := reflect.Zero(reflect.PointerTo(of)).Interface().(describer); described && len(p.Enum) > 0 {
		doc += b.marks.meanings(deref(f.Type), p.Enum, b.marks.flag(key, "spaced"))
	}
	own := spec.Schema{SchemaProps: spec.SchemaProps{Description: doc}}
	if d := b.marks.get(key, "default"); len(d) == 1 {
		var v any
		if json.Unmarshal([]byte(d[0]), &v) == nil && b.version == V3 {
			own.Default = v
		}
	}
	if own.Default == nil && b.version == V3 && !omit {
		own.Default = zero(f.Type)
	}
	if kind := b.marks.get(key, "listType"); len(kind) == 1 {
		own.AddExtension("x-kubernetes-list-type", kind[0])
	}
	if keys := b.marks.get(key, "listMapKey"); len(keys) > 0 {
		own.AddExtension("x-kubernetes-list-map-keys", anys(keys))
	}
	for _, kind := range []string{"atomic", "granular"} {
		if b.marks.has(key, "mapType", kind) || b.marks.has(key, "structType", kind) {
			own.AddExtension("x-kubernetes-map-type", kind)
		}
	}
	if v := f.Tag.Get("patchStrategy"); v != "" {
		own.AddExtension("x-kubernetes-patch-strategy", v)
	}
	if v := f.Tag.Get("patchMergeKey"); v != "" {
		own.AddExtension("x-kubernetes-patch-merge-key", v)
	}
	if p.Ref.String() != "" && b.version == V3 {
		// Beside a $ref everything else is ignored; allOf keeps both.
		if f.Type.Kind() == reflect.Struct && own.Default == nil && !readsItself(f.Type) {
			own.Default = map[string]any{}
		}
		if own.Description == "" && own.Default == nil && len(own.Extensions) == 0 {
			return p
		}
		own.AllOf = []spec.Schema{p}
		return own
	}
	p.Description, p.Default = own.Description, own.Default
	for k, v := range own.Extensions {
		p.AddExtension(k, v)
	}
	return p
}

// readsItself reports whether a type reads JSON in its own way: its empty value is null.
func readsItself(t reflect.Type) bool {
	return reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// zero is the value of a scalar that nobody sets; nil for what is no scalar.
func zero(t reflect.Type) any {
	switch {
	case t.Kind() == reflect.String:
		return ""
	case t.Kind() == reflect.Bool:
		return false
	case reflect.Zero(t).CanInt(), reflect.Zero(t).CanUint(), reflect.Zero(t).CanFloat():
		return 0
	}
	return nil
}

func anys[T any](in []T) []any {
	out := make([]any, len(in))
	for i, v := range in {
		out[i] = v
	}
	return out
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// schemaOf is the schema of a value of type t in place; structs and types with a form of their own become references.
func (b *Builder) schemaOf(t reflect.Type) spec.Schema {
	t = deref(t)
	if t.Kind() == reflect.Struct {
		return b.reference(t)
	}
	if _, ok := custom(t, b.version); ok {
		return b.reference(t)
	}
	prop := func(kind, format string) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{kind}, Format: format}}
	}
	switch t.Kind() {
	case reflect.Bool:
		return prop("boolean", "")
	case reflect.Int64, reflect.Uint64, reflect.Uint32, reflect.Uint:
		return prop("integer", "int64")
	case reflect.Int, reflect.Int32, reflect.Int16, reflect.Int8, reflect.Uint16, reflect.Uint8:
		return prop("integer", "int32")
	case reflect.Float32:
		return prop("number", "float")
	case reflect.Float64:
		return prop("number", "double")
	case reflect.String:
		p := prop("string", "")
		p.Enum = b.marks.values(t)
		return p
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return prop("string", "byte")
		}
		p, items := prop("array", ""), b.schemaOf(t.Elem())
		p.Items = &spec.SchemaOrArray{Schema: &items}
		return p
	case reflect.Map:
		p, values := prop("object", ""), b.schemaOf(t.Elem())
		p.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: &values}
		return p
	}
	return prop("object", "")
}
