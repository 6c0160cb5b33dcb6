package resource

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Mapping finds the kind behind a TYPE argument: "po", "deployments.apps", "deployments.v1.apps", "Deployment".
func (c *Client) Mapping(arg string) (*meta.RESTMapping, error) {
	full, gr := schema.ParseResourceArg(arg)
	var gvk schema.GroupVersionKind
	if full != nil {
		gvk, _ = c.Mapper.KindFor(*full)
	}
	var err error
	if gvk.Empty() {
		gvk, err = c.Mapper.KindFor(gr.WithVersion(""))
	}
	if err == nil && !gvk.Empty() {
		return c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if m, e := c.kind(arg); e == nil {
		return m, nil
	}
	var noMatch *meta.NoResourceMatchError
	if errors.As(err, &noMatch) {
		return nil, noType(arg)
	}
	return nil, err
}

// kind finds a TYPE argument that is a kind.
func (c *Client) kind(arg string) (*meta.RESTMapping, error) {
	full, gk := schema.ParseKindArg(arg)
	if full != nil {
		if m, err := c.Mapper.RESTMapping(full.GroupKind(), full.Version); err == nil {
			return m, nil
		}
	}
	return c.Mapper.RESTMapping(gk)
}

// noType says that the server has no resource of a TYPE argument, in the group that it names.
func noType(arg string) error {
	gr := schema.ParseGroupResource(arg)
	if gr.Group == "" {
		return fmt.Errorf("the server doesn't have a resource type %q", gr.Resource)
	}
	return fmt.Errorf("the server doesn't have a resource type %q in group %q", gr.Resource, gr.Group)
}

// MappingFor finds the resource of an object's kind.
func (c *Client) MappingFor(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	m, err := c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		if r, ok := c.Mapper.(meta.ResettableRESTMapper); ok {
			r.Reset() // the kind may be newer than the cache
			m, err = c.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		}
	}
	return m, err
}

// mappingOf is MappingFor, or with local a guess that asks nobody.
func (c *Client) mappingOf(gvk schema.GroupVersionKind, local bool) (*meta.RESTMapping, error) {
	if !local {
		return c.MappingFor(gvk)
	}
	r, _ := meta.UnsafeGuessKindToResource(gvk)
	return &meta.RESTMapping{Resource: r, GroupVersionKind: gvk, Scope: meta.RESTScopeNamespace}, nil
}

// types expands a comma-separated list of TYPE arguments, each type once; named is set if names follow, which
// categories do not take.
func (c *Client) types(arg string, named bool) ([]*meta.RESTMapping, error) {
	if _, ok := c.categories.Expand(arg); ok && named {
		return nil, errors.New("you must specify only one resource")
	}
	var out []*meta.RESTMapping
	seen := map[schema.GroupVersionResource]bool{}
	for _, one := range strings.Split(arg, ",") {
		if one == "" {
			return nil, noType(one)
		}
		names := []string{one}
		if members, ok := c.categories.Expand(one); ok && !named {
			names = names[:0]
			for _, m := range members {
				names = append(names, m.String())
			}
		}
		for _, n := range names {
			m, err := c.Mapping(n)
			if err != nil {
				return nil, err
			}
			if !seen[m.Resource] {
				seen[m.Resource] = true
				out = append(out, m)
			}
		}
	}
	return out, nil
}
