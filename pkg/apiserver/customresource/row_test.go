package customresource

import (
	"slices"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// widgets is a definition whose objects are small, by a rule.
func widgets() *v1.CustomResourceDefinition {
	most := int64(100)
	crd := &v1.CustomResourceDefinition{}
	crd.Name = "widgets.example.com"
	crd.Spec.Group, crd.Spec.Scope = "example.com", v1.ClusterScoped
	crd.Spec.Names = v1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget",
		ListKind: "WidgetList"}
	crd.Status.AcceptedNames = crd.Spec.Names
	crd.Spec.Versions = []v1.CustomResourceDefinitionVersion{
		{Name: "v1", Served: true, Storage: true, Schema: &v1.CustomResourceValidation{
			OpenAPIV3Schema: &v1.JSONSchemaProps{Type: "object", Description: "What a widget is.",
				Properties: map[string]v1.JSONSchemaProps{
					"size": {Type: "string", MaxLength: &most,
						XValidations: v1.ValidationRules{{Rule: "self == 'small'", Message: "too large"}}},
					"note": {Type: "string"},
				}},
		}}}
	return crd
}

// TestRow: a row publishes the schema with its descriptions, which the kept definition is without, and warns of what a
// rule would refuse if it were new.
func TestRow(t *testing.T) {
	t.Parallel()
	d, err := newDefinition(widgets(), func() (*v1.CustomResourceDefinition, error) { return widgets(), nil })
	if err != nil {
		t.Fatal(err)
	}
	s := newServed(d, converter{ctx: t.Context()}, func(*v1.CustomResourceDefinitionVersion) bool { return true })
	published, err := s.row.Versions[0].Schema()
	if err != nil {
		t.Fatal(err)
	}
	if published.Description != "What a widget is." || len(published.Properties) != 2 {
		t.Errorf("published: %+v", published)
	}
	widget := func(note string) *unstructured.Unstructured {
		return &unstructured.Unstructured{
			Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
				"metadata": map[string]any{"name": "a"}, "size": "large", "note": note}}
	}
	if errs := s.row.Strategy.Validate(widget("a")); len(errs) != 1 {
		t.Errorf("a new one: %v", errs)
	}
	want := []string{`size: Invalid value: "large": too large`}
	errs, kept := s.row.Strategy.ValidateUpdate(widget("b"), widget("a"))
	if len(errs) != 0 || !slices.Equal(kept, want) {
		t.Errorf("one that was so: %v, warnings %q, want %q", errs, kept, want)
	}
}
