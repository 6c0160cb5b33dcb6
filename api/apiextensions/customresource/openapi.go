package customresource

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"bonsai/api/openapi"
)

// OpenAPI returns the schema of a version's objects as OpenAPI v3 publishes it. Unlike a Type it has descriptions. The
// caller adds the fields that all objects have.
func OpenAPI(crd *apiextensionsv1.CustomResourceDefinition, version string) (*spec.Schema, error) {
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version
	})
	if i < 0 {
		return nil, fmt.Errorf("%s has no version %s", crd.Name, version)
	}
	v := crd.Spec.Versions[i].Schema
	if v == nil || v.OpenAPIV3Schema == nil {
		return &spec.Schema{}, nil
	}
	s, err := published(v.OpenAPIV3Schema)
	if err != nil {
		return nil, fmt.Errorf("schema of version %s of %s: %w", version, crd.Name, err)
	}
	if fields := crd.Spec.Versions[i].SelectableFields; len(fields) > 0 {
		paths := make([]any, len(fields))
		for i, f := range fields {
			paths[i] = map[string]any{"fieldPath": strings.TrimPrefix(f.JSONPath, ".")}
		}
		s.AddExtension(openapi.SelectableFields, paths)
	}
	return &s, nil
}

// published is one schema with all below it.
func published(p *apiextensionsv1.JSONSchemaProps) (s spec.Schema, err error) {
	s.Description, s.Title, s.Format, s.Nullable = p.Description, p.Title, p.Format, p.Nullable
	if p.Type != "" {
		s.Type = spec.StringOrArray{p.Type}
	}
	s.Minimum, s.Maximum, s.ExclusiveMinimum, s.ExclusiveMaximum, s.MultipleOf = p.Minimum, p.Maximum,
		p.ExclusiveMinimum, p.ExclusiveMaximum, p.MultipleOf
	s.MinLength, s.MaxLength, s.Pattern = p.MinLength, p.MaxLength, p.Pattern
	s.MinItems, s.MaxItems, s.UniqueItems = p.MinItems, p.MaxItems, p.UniqueItems
	s.MinProperties, s.MaxProperties, s.Required = p.MinProperties, p.MaxProperties, p.Required
	if p.Default != nil {
		if s.Default, err = decoded(p.Default.Raw); err != nil {
			return s, fmt.Errorf("default: %w", err)
		}
	}
	if p.Example != nil {
		if s.Example, err = decoded(p.Example.Raw); err != nil {
			return s, fmt.Errorf("example: %w", err)
		}
	}
	if d := p.ExternalDocs; d != nil {
		s.ExternalDocs = &spec.ExternalDocumentation{Description: d.Description, URL: d.URL}
	}
	for _, e := range p.Enum {
		value, err := decoded(e.Raw)
		if err != nil {
			return s, fmt.Errorf("enum: %w", err)
		}
		s.Enum = append(s.Enum, value)
	}
	extend(&s, p)
	err = publishBelow(&s, p)
	if p.XIntOrString {
		chooseIntOrString(&s)
	}
	return s, err
}

// chooseIntOrString spells out x-kubernetes-int-or-string for clients that do not know the extension, unless the schema
// does so itself.
func chooseIntOrString(s *spec.Schema) {
	says := func(choice []spec.Schema) bool {
		return len(choice) == 2 && choice[0].Type.Contains("integer") && choice[1].Type.Contains("string")
	}
	choice := []spec.Schema{{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"integer"}}},
		{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"string"}}}}
	switch {
	case says(s.AnyOf), len(s.AllOf) > 0 && says(s.AllOf[0].AnyOf):
	case len(s.AnyOf) == 0:
		s.AnyOf = choice
	default:
		s.AllOf = append([]spec.Schema{{SchemaProps: spec.SchemaProps{AnyOf: choice}}}, s.AllOf...)
	}
}

func decoded(raw []byte) (v any, err error) {
	if len(raw) == 0 { // null
		return nil, nil
	}
	err = utiljson.Unmarshal(raw, &v)
	return v, err
}

// extend adds the x-kubernetes- extensions.
func extend(s *spec.Schema, p *apiextensionsv1.JSONSchemaProps) {
	flag := func(is bool, name string) {
		if is {
			s.AddExtension(name, true)
		}
	}
	text := func(v *string, name string) {
		if v != nil {
			s.AddExtension(name, *v)
		}
	}
	flag(p.XPreserveUnknownFields != nil && *p.XPreserveUnknownFields, "x-kubernetes-preserve-unknown-fields")
	flag(p.XEmbeddedResource, "x-kubernetes-embedded-resource")
	flag(p.XIntOrString, "x-kubernetes-int-or-string")
	text(p.XListType, "x-kubernetes-list-type")
	text(p.XMapType, "x-kubernetes-map-type")
	if len(p.XListMapKeys) > 0 {
		s.AddExtension("x-kubernetes-list-map-keys", p.XListMapKeys)
	}
	if len(p.XValidations) > 0 {
		s.AddExtension("x-kubernetes-validations", p.XValidations)
	}
}

// publishBelow adds what stands below p.
func publishBelow(s *spec.Schema, p *apiextensionsv1.JSONSchemaProps) error {
	one := func(p *apiextensionsv1.JSONSchemaProps) (*spec.Schema, error) {
		if p == nil {
			return nil, nil
		}
		below, err := published(p)
		return &below, err
	}
	for name, property := range p.Properties {
		below, err := published(&property)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if s.Properties == nil {
			s.Properties = make(map[string]spec.Schema, len(p.Properties))
		}
		s.Properties[name] = below
	}
	if p.Items != nil && p.Items.Schema != nil {
		below, err := one(p.Items.Schema)
		if err != nil {
			return fmt.Errorf("items: %w", err)
		}
		s.Items = &spec.SchemaOrArray{Schema: below}
	}
	if a := p.AdditionalProperties; a != nil {
		below, err := one(a.Schema)
		if err != nil {
			return fmt.Errorf("additionalProperties: %w", err)
		}
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: a.Allows, Schema: below}
	}
	for _, list := range []struct {
		from []apiextensionsv1.JSONSchemaProps
		to   *[]spec.Schema
	}{{p.AllOf, &s.AllOf}, {p.AnyOf, &s.AnyOf}, {p.OneOf, &s.OneOf}} {
		for i := range list.from {
			below, err := published(&list.from[i])
			if err != nil {
				return err
			}
			*list.to = append(*list.to, below)
		}
	}
	var err error
	s.Not, err = one(p.Not)
	return err
}
