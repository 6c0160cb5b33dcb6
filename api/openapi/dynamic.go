package openapi

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// SelectableFields is the extension that says which fields objects can be selected by, of a kind and of its lists:
// [{fieldPath: spec.color}].
const SelectableFields = "x-kubernetes-selectable-fields"

// AddDynamic makes the schema of a kind that has no Go type out of the kind's own, which says what its objects have
// beyond apiVersion, kind and metadata; nil: nothing is known of them. It returns the reference to it.
func (b *Builder) AddDynamic(gvk schema.GroupVersionKind, own func() (*spec.Schema, error)) (spec.Schema, error) {
	name := dynamicName(gvk)
	if _, ok := b.defs[name]; !ok {
		s := spec.Schema{}
		if own != nil {
			made, err := own()
			if err != nil {
				return spec.Schema{}, fmt.Errorf("schema of %s: %w", gvk, err)
			}
			s = *made
		}
		if b.version == V2 {
			if s = forV2(s); keepsUnknown(&s) { // v2 publishes no properties of such a schema
				fields, selectable := s.Extensions[SelectableFields]
				s = spec.Schema{}
				b.addGVK(&s, gvk)
				s.Type = spec.StringOrArray{"object"}
				if selectable {
					s.AddExtension(SelectableFields, fields)
				}
				b.defs[name] = s
				return b.referTo(name), nil
			}
		}
		s = b.withEmbedded(s)
		s.Type = spec.StringOrArray{"object"}
		s.Properties = maps.Clone(s.Properties)
		s.Extensions = maps.Clone(s.Extensions)
		b.addKind(&s, gvk, reflect.TypeFor[metav1.ObjectMeta]())
		b.defs[name] = s
	}
	return b.referTo(name), nil
}

// AddDynamicList makes the schema of the lists, of kind list, of such a kind, whose resource is plural.
func (b *Builder) AddDynamicList(list, plural string, gvk schema.GroupVersionKind,
	own func() (*spec.Schema, error)) (spec.Schema, error) {
	name := dynamicName(gvk.GroupVersion().WithKind(list))
	if _, ok := b.defs[name]; !ok {
		item, err := b.AddDynamic(gvk, own)
		if err != nil {
			return spec.Schema{}, err
		}
		items := spec.ArrayProperty(&item)
		items.Description = "List of " + plural + ". More info: " + conventions
		s := spec.Schema{SchemaProps: spec.SchemaProps{Description: list + " is a list of " + gvk.Kind,
			Type: spec.StringOrArray{"object"}, Required: []string{"items"},
			Properties: map[string]spec.Schema{"items": *items}}}
		b.addKind(&s, gvk.GroupVersion().WithKind(list), reflect.TypeFor[metav1.ListMeta]())
		if fields, ok := b.defs[dynamicName(gvk)].Extensions[SelectableFields]; ok {
			s.AddExtension(SelectableFields, fields)
		}
		b.defs[name] = s
	}
	return b.referTo(name), nil
}

// addKind adds what all objects have: apiVersion, kind and metadata of type meta.
func (b *Builder) addKind(s *spec.Schema, gvk schema.GroupVersionKind, meta reflect.Type) {
	if s.Properties == nil {
		s.Properties = map[string]spec.Schema{}
	}
	docs := metav1.TypeMeta{}.SwaggerDoc()
	for _, name := range []string{"apiVersion", "kind"} {
		p := spec.StringProperty()
		p.Description = docs[name]
		s.Properties[name] = *p
	}
	s.Properties["metadata"] = b.metadata(meta)
	b.addGVK(s, gvk)
}

const conventions = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"

// metadata is a reference to a type of metadata.
func (b *Builder) metadata(meta reflect.Type) spec.Schema {
	s := b.reference(meta)
	if b.version == V3 { // which has no other keys beside a reference, but may combine it with them
		s = spec.Schema{SchemaProps: spec.SchemaProps{AllOf: []spec.Schema{s}}}
	}
	s.Description = "Standard object's metadata. More info: " + conventions + "#metadata"
	if meta == reflect.TypeFor[metav1.ListMeta]() {
		s.Description = "Standard list metadata. More info: " + conventions + "#types-kinds"
	}
	return s
}

func (b *Builder) addGVK(s *spec.Schema, gvk schema.GroupVersionKind) {
	s.AddExtension("x-kubernetes-group-version-kind",
		[]any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}})
}

func keepsUnknown(s *spec.Schema) bool {
	keeps, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields")
	return keeps
}

// withEmbedded adds to the objects embedded in s what all objects have. s itself is not changed.
func (b *Builder) withEmbedded(s spec.Schema) spec.Schema {
	if s.Items != nil && s.Items.Schema != nil {
		item := b.withEmbedded(*s.Items.Schema)
		s.Items = &spec.SchemaOrArray{Schema: &item}
	}
	if p := s.AdditionalProperties; p != nil && p.Schema != nil {
		value := b.withEmbedded(*p.Schema)
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: p.Allows, Schema: &value}
	}
	if s.Properties != nil {
		properties := make(map[string]spec.Schema, len(s.Properties))
		for name, p := range s.Properties {
			properties[name] = b.withEmbedded(p)
		}
		s.Properties = properties
	}
	if is, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource"); !is || s.Type == nil {
		return s
	}
	if s.Properties == nil {
		s.Properties = map[string]spec.Schema{}
	}
	for name, description := range map[string]string{
		"apiVersion": "apiVersion defines the versioned schema of this representation of an object. More info: " +
			conventions + "#resources",
		"kind": "kind is a string value representing the type of this object. In CamelCase. More info: " +
			conventions + "#types-kinds",
	} {
		p := spec.StringProperty()
		p.Description = description
		s.Properties[name] = *p
	}
	s.Properties["metadata"] = b.metadata(reflect.TypeFor[metav1.ObjectMeta]())
	s.Required = slices.Clone(s.Required)
	for _, name := range []string{"kind", "apiVersion"} {
		if !slices.Contains(s.Required, name) {
			s.Required = append(s.Required, name)
		}
	}
	return s
}

// dynamicName is the definition's name of a kind without a Go type: "com.example.v1.Thing".
func dynamicName(gvk schema.GroupVersionKind) string {
	parts := strings.Split(gvk.Group, ".")
	slices.Reverse(parts)
	return strings.Join(append(parts, gvk.Version, gvk.Kind), ".")
}

// forV2 leaves out of a schema what OpenAPI v2 cannot say, so that clients which know only that refuse nothing that is
// right: choices between schemas, values that may be null, and what stands in objects whose unknown fields are kept.
func forV2(s spec.Schema) spec.Schema {
	s.AllOf, s.AnyOf, s.OneOf, s.Not, s.Default = nil, nil, nil, nil, nil
	keeps := keepsUnknown(&s)
	if s.Nullable || keeps {
		s.Type, s.Nullable = nil, false
	}
	if keeps || s.Type == nil && len(s.Properties) > 0 {
		s.Items, s.Properties, s.Required = nil, nil, nil
	}
	if s.Items != nil && s.Items.Schema != nil {
		item := forV2(*s.Items.Schema)
		s.Items = &spec.SchemaOrArray{Schema: &item}
	}
	if p := s.AdditionalProperties; p != nil && p.Schema != nil {
		value := forV2(*p.Schema)
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: p.Allows, Schema: &value}
	}
	if s.Properties != nil {
		properties := make(map[string]spec.Schema, len(s.Properties))
		for name, p := range s.Properties {
			properties[name] = forV2(p)
		}
		s.Properties = properties
	}
	return s
}
