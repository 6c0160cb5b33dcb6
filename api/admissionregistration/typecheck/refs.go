package typecheck

import (
	"fmt"
	"maps"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// refs replaces references by what they refer to, as CEL's declarations know none. It does what k8s.io/apiserver's
// resolver does, which would link the types of every API group that ever was.
type refs struct {
	schemas map[string]*spec.Schema
	// open are the references that are being followed. Inside itself, a reference counts as an object without known
	// fields.
	open map[string]bool
}

// inline returns s without references in its properties, items and additional properties, as far as they lead to each
// other. What it changes it copies. An error says which reference leads nowhere.
func (r *refs) inline(s *spec.Schema) (*spec.Schema, error) {
	ref := s.Ref.String()
	// OpenAPI v3 has a reference with a description or a default beside it in an allOf
	if ref == "" && len(s.AllOf) > 0 {
		ref = s.AllOf[0].Ref.String()
	}
	if ref != "" {
		return r.follow(ref)
	}
	out := *s
	if s.Properties != nil {
		out.Properties = maps.Clone(s.Properties)
		for name := range s.Properties {
			property := s.Properties[name]
			inlined, err := r.inline(&property)
			if err != nil {
				return nil, err
			}
			out.Properties[name] = *inlined
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		inlined, err := r.inline(s.Items.Schema)
		if err != nil {
			return nil, err
		}
		out.Items = &spec.SchemaOrArray{Schema: inlined}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		inlined, err := r.inline(s.AdditionalProperties.Schema)
		if err != nil {
			return nil, err
		}
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: s.AdditionalProperties.Allows, Schema: inlined}
	}
	return &out, nil
}

func (r *refs) follow(ref string) (*spec.Schema, error) {
	if r.open[ref] {
		return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}, nil
	}
	target, ok := r.schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
	if !ok {
		return nil, fmt.Errorf("schema %s is not there", ref)
	}
	r.open[ref] = true
	defer delete(r.open, ref)
	return r.inline(target)
}
