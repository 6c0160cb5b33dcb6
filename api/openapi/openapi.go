// Package openapi is the schema of every API type, made on demand by reflection: property names, types and patch rules
// from the Go types' tags, descriptions from their SwaggerDoc methods (or what upstream generates), and what reflection
// cannot see (+listType, +enum, …) from the embedded table markers.txt. A new resource needs no generated code.
//
// The same definitions serve /openapi/v2, /openapi/v3, kubectl explain and server-side apply.
package openapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Version is the version of OpenAPI that schemas are written for.
type Version int

// V2 refers to #/definitions/…; V3 to #/components/schemas/… and knows oneOf and allOf.
const (
	V2 Version = iota
	V3
)

func (f Version) refPrefix() string {
	if f == V3 {
		return "#/components/schemas/"
	}
	return "#/definitions/"
}

// Builder makes schemas. It is used by one goroutine, and thrown away when the document is made.
type Builder struct {
	scheme  *runtime.Scheme
	version Version
	of      schema.GroupVersion
	marks   marks
	defs    map[string]spec.Schema
	// generated are upstream's definitions of types that do not describe themselves; nil until one is asked for.
	generated map[string]common.OpenAPIDefinition
}

// NewBuilder returns a builder for the types of scheme.
func NewBuilder(scheme *runtime.Scheme, v Version) *Builder {
	return &Builder{scheme: scheme, version: v, marks: loadMarks(), defs: map[string]spec.Schema{}}
}

// About has the builder say of types that are kinds of every group only that they are of this group version.
func (b *Builder) About(gv schema.GroupVersion) *Builder {
	b.of = gv
	return b
}

// Definitions are the schemas made so far, by name.
func (b *Builder) Definitions() map[string]spec.Schema { return b.defs }

// Add makes the schema of a kind and of all it refers to, and returns the reference to it.
func (b *Builder) Add(gvk schema.GroupVersionKind) (spec.Schema, error) {
	obj, err := b.scheme.New(gvk)
	if err != nil {
		return spec.Schema{}, fmt.Errorf("schema of %s: %w", gvk, err)
	}
	return b.reference(reflect.TypeOf(obj).Elem()), nil
}

// AddType is Add for a type that is no kind of its own (metav1.Patch).
func (b *Builder) AddType(t reflect.Type) spec.Schema { return b.reference(t) }

// Name is the definition's name of a type: "io.k8s.api.core.v1.Pod".
func Name(t reflect.Type) string {
	if m, ok := reflect.New(t).Interface().(interface{ OpenAPIModelName() string }); ok {
		return m.OpenAPIModelName()
	}
	host, rest, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + strings.ReplaceAll(rest, "/", ".") + "." + t.Name()
}

// reference returns a $ref to t's definition, which it makes if need be.
func (b *Builder) reference(t reflect.Type) spec.Schema {
	name := Name(t)
	if _, ok := b.defs[name]; !ok {
		b.defs[name] = spec.Schema{} // types may refer to themselves
		b.defs[name] = b.define(t)
	}
	return b.referTo(name)
}

func (b *Builder) referTo(name string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Ref: spec.MustCreateRef(b.version.refPrefix() + name)}}
}

// define makes the schema of a named type.
func (b *Builder) define(t reflect.Type) spec.Schema {
	s, ok := custom(t, b.version)
	if !ok {
		s = spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: map[string]spec.Schema{}}}
		b.fields(&s, t)
		if len(s.Properties) == 0 {
			s.Properties = nil
		}
	}
	s.Description = b.marks.description(typeKey(t), b.describe(t)[""])
	if b.marks.flag(typeKey(t), "union") {
		s.AddExtension("x-kubernetes-unions", []any{b.union(t)})
	}
	if b.marks.has(typeKey(t), "structType", "atomic") {
		s.AddExtension("x-kubernetes-map-type", "atomic")
	}
	if kinds := b.kinds(t); len(kinds) > 0 {
		s.AddExtension("x-kubernetes-group-version-kind", kinds)
	}
	return s
}

// union describes a type with one field set at a time: its fields, by their names in Go, and its discriminator.
func (b *Builder) union(t reflect.Type) map[string]any {
	out, fields := map[string]any{}, map[string]any{}
	for f := range fieldsOf(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if b.marks.flag(typeKey(t)+":"+name, "unionDiscriminator") {
			out["discriminator"] = name
		} else {
			fields[name] = f.Name
		}
	}
	out["fields-to-discriminateBy"] = fields
	return out
}

// kinds are all kinds that the scheme knows t by, sorted; of one of every group, those without a group and of the one
// that the document is about.
func (b *Builder) kinds(t reflect.Type) []any {
	obj, ok := reflect.New(t).Interface().(runtime.Object)
	if !ok {
		return nil
	}
	gvks, _, err := b.scheme.ObjectKinds(obj)
	if err != nil {
		return nil // not a kind of its own
	}
	slices.SortFunc(gvks, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	everywhere := len(gvks) > 1 && gvks[0].Group == "" // deletion's options, and events of watches
	var out []any
	for _, k := range gvks {
		if k.Version != runtime.APIVersionInternal &&
			(!everywhere || b.of.Empty() || k.Group == "" || k.GroupVersion() == b.of) {
			out = append(out, map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind})
		}
	}
	return out
}

// custom are the types that say themselves what they look like in JSON (times, quantities, raw objects).
func custom(t reflect.Type, version Version) (spec.Schema, bool) {
	v, ok := reflect.New(t).Interface().(interface {
		OpenAPISchemaType() []string
		OpenAPISchemaFormat() string
	})
	if !ok {
		return spec.Schema{}, false
	}
	s := spec.Schema{SchemaProps: spec.SchemaProps{Type: v.OpenAPISchemaType(), Format: v.OpenAPISchemaFormat()}}
	if one, ok := v.(interface{ OpenAPIV3OneOfTypes() []string }); ok && version == V3 {
		s.Type = nil
		for _, name := range one.OpenAPIV3OneOfTypes() {
			s.OneOf = append(s.OneOf, spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{name}}})
		}
	}
	return s, true
}
