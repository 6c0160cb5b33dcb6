package openapi

import (
	"reflect"

	extensions "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	aggregation "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// describer is a type that describes itself and its fields, by their JSON names.
type describer interface{ SwaggerDoc() map[string]string }

// describe returns a type's descriptions: of itself under "", of its fields under their JSON names. Types without a
// SwaggerDoc method (those of apiextensions and apiregistration, quantities, raw objects) are described by what
// upstream generates for them.
func (b *Builder) describe(t reflect.Type) map[string]string {
	if d, ok := reflect.New(t).Interface().(describer); ok {
		return d.SwaggerDoc()
	}
	if b.generated == nil {
		b.generated = generated()
	}
	d, ok := b.generated[Name(t)]
	if !ok {
		return nil
	}
	out := map[string]string{"": d.Schema.Description}
	for name, p := range d.Schema.Properties {
		out[name] = p.Description
	}
	return out
}

// generated are upstream's definitions, by name.
func generated() map[string]common.OpenAPIDefinition {
	out := map[string]common.OpenAPIDefinition{}
	for _, definitions := range []func(common.ReferenceCallback) map[string]common.OpenAPIDefinition{
		extensions.GetOpenAPIDefinitions, aggregation.GetOpenAPIDefinitions,
	} {
		for name, d := range definitions(func(string) spec.Ref { return spec.Ref{} }) {
			out[name] = d
		}
	}
	return out
}
