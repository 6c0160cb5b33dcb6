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

// AddDynamic makes the schema of a kind that has no Go type out of the kind's own, which says what its objects have beyond
// apiVersion, kind and metadata; nil: nothing is known of them. It returns the reference to it.
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
		if b.form == V2 {
			s = forV2(s)
		}
		s.Type = spec.StringOrArray{"object"}
		s.Properties = maps.Clone(s.Properties)
		s.Extensions = maps.Clone(s.Extensions)
		b.addKind(&s, gvk, reflect.TypeFor[metav1.ObjectMeta]())
		b.defs[name] = s
	}
	return b.referTo(name), nil
}

// AddDynamicList makes the schema of the lists, of kind list, of such a kind.
func (b *Builder) AddDynamicList(list string, gvk schema.GroupVersionKind, own func() (*spec.Schema, error)) (spec.Schema, error) {
	name := dynamicName(gvk.GroupVersion().WithKind(list))
	if _, ok := b.defs[name]; !ok {
		item, err := b.AddDynamic(gvk, own)
		if err != nil {
			return spec.Schema{}, err
		}
		items := spec.ArrayProperty(&item)
		items.Description = "List of " + gvk.Kind + " objects."
		s := spec.Schema{SchemaProps: spec.SchemaProps{Description: list + " is a list of " + gvk.Kind, Type: spec.StringOrArray{"object"}, Required: []string{"items"},
			Properties: map[string]spec.Schema{"items": *items}}}
		b.addKind(&s, gvk.GroupVersion().WithKind(list), reflect.TypeFor[metav1.ListMeta]())
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
	metadata := b.reference(meta)
	if b.form == V3 { // which has no other keys beside a reference, but may combine it with them
		metadata = spec.Schema{SchemaProps: spec.SchemaProps{AllOf: []spec.Schema{metadata}}}
	}
	metadata.Description = "Standard metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
	s.Properties["metadata"] = metadata
	s.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}})
}

// dynamicName is the definition's name of a kind without a Go type: "com.example.v1.Thing".
func dynamicName(gvk schema.GroupVersionKind) string {
	parts := strings.Split(gvk.Group, ".")
	slices.Reverse(parts)
	return strings.Join(append(parts, gvk.Version, gvk.Kind), ".")
}

// forV2 leaves out of a schema what OpenAPI v2 cannot say, so that clients which know only that refuse nothing that is right: choices
// between schemas, values that may be null, and what stands in objects whose unknown fields are kept.
func forV2(s spec.Schema) spec.Schema {
	s.AllOf, s.AnyOf, s.OneOf, s.Not, s.Default = nil, nil, nil, nil, nil
	keeps, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields")
	if s.Nullable {
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
