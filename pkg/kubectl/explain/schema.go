package explain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// node is a schema of OpenAPI v3, as far as it is shown.
type node struct {
	Ref         string           `json:"$ref"`
	Description string           `json:"description"`
	Type        string           `json:"type"`
	Required    []string         `json:"required"`
	Properties  map[string]*node `json:"properties"`
	Items       *node            `json:"items"`
	Values      values           `json:"additionalProperties"`
	AllOf       []*node          `json:"allOf"`
	Enum        []any            `json:"enum"`
	Kinds       []kind           `json:"x-kubernetes-group-version-kind"`
}

// values is the schema of a map's values, nil where additionalProperties only says true or false.
type values struct{ *node }

// UnmarshalJSON implements json.Unmarshaler.
func (v *values) UnmarshalJSON(data []byte) error {
	if s := string(data); s == "true" || s == "false" || s == "null" {
		return nil
	}
	v.node = &node{}
	return json.Unmarshal(data, v.node)
}

type kind struct{ Group, Version, Kind string }

// document is what the server publishes of one group and version.
type document struct {
	Paths map[string]struct {
		Get *struct {
			Kind *kind `json:"x-kubernetes-group-version-kind"`
		} `json:"get"`
	} `json:"paths"`
	Components struct {
		Schemas map[string]*node `json:"schemas"`
	} `json:"components"`
}

func parse(data []byte) (*document, error) {
	d := &document{}
	if err := json.Unmarshal(data, d); err != nil {
		return nil, fmt.Errorf("decode the server's OpenAPI document: %w", err)
	}
	return d, nil
}

// kind is the kind that the paths of gvr serve.
func (d *document) kind(gvr schema.GroupVersionResource) (schema.GroupVersionKind, bool) {
	base := "/apis/" + gvr.Group + "/" + gvr.Version + "/"
	if gvr.Group == "" {
		base = "/api/" + gvr.Version + "/"
	}
	for _, scope := range []string{"namespaces/{namespace}/", ""} {
		for _, end := range []string{"/{name}", ""} {
			if get := d.Paths[base+scope+gvr.Resource+end].Get; get != nil && get.Kind != nil {
				return schema.GroupVersionKind(*get.Kind), true
			}
		}
	}
	return schema.GroupVersionKind{}, false
}

// schemaOf is the schema of a kind, nil if there is none.
func (d *document) schemaOf(gvk schema.GroupVersionKind) *node {
	var names []string
	for name, n := range d.Components.Schemas {
		if slices.Contains(n.Kinds, kind(gvk)) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return d.Components.Schemas[slices.Min(names)]
}

// follow is the schema n refers to, and its name; n itself and "" if it refers to none.
func (d *document) follow(n *node) (*node, string) {
	ref := n.Ref
	if ref == "" && len(n.AllOf) == 1 {
		ref = n.AllOf[0].Ref
	}
	name := ref[strings.LastIndex(ref, "/")+1:]
	if to := d.Components.Schemas[name]; to != nil {
		return to, name
	}
	return n, ""
}

// typeOf names n's type: "string", "[]Container", "map[string]string".
func (d *document) typeOf(n *node) string {
	to, name := d.follow(n)
	switch {
	case to.Type == "array" && to.Items != nil:
		return "[]" + d.typeOf(to.Items)
	case to.Values.node != nil:
		return "map[string]" + d.typeOf(to.Values.node)
	case to.Type != "" && to.Type != "object":
		return to.Type
	case name != "":
		return name[strings.LastIndex(name, ".")+1:]
	}
	return "Object"
}

// element is what has n's fields: n, what it refers to, or the innermost elements of an array or map; and the name of
// the schema it refers to.
func (d *document) element(n *node) (*node, string) {
	to, name := d.follow(n)
	switch {
	case to.Items != nil:
		return d.element(to.Items)
	case to.Values.node != nil:
		return d.element(to.Values.node)
	}
	return to, name
}

// descriptions are those of n and of all it leads to.
func (d *document) descriptions(n *node) []string {
	var out []string
	add := func(s string) {
		if s != "" {
			out = append(out, s)
		}
	}
	add(n.Description)
	to, _ := d.follow(n)
	if to != n {
		add(to.Description)
	}
	switch {
	case to.Items != nil:
		out = append(out, d.descriptions(to.Items)...)
	case to.Values.node != nil:
		out = append(out, d.descriptions(to.Values.node)...)
	}
	return out
}

// find is the field at path beneath n, and the object it is a field of.
func (d *document) find(n *node, path []string) (*node, bool) {
	for _, name := range path {
		owner, _ := d.element(n)
		if n = owner.Properties[name]; n == nil {
			return nil, false
		}
	}
	return n, true
}
