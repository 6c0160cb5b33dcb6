// Package served is for kinds that are known only at run time: what an API server serves, and the metadata of its
// objects.
package served

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiclient"
)

// Resource is one resource that the API server offers, in the group version it prefers.
type Resource struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
	Verbs      []string
	// Subresources are the names of what is below one object: "status", "scale".
	Subresources []string
}

// Has reports whether the resource supports all the verbs.
func (r Resource) Has(verbs ...string) bool {
	for _, v := range verbs {
		if !slices.Contains(r.Verbs, v) {
			return false
		}
	}
	return true
}

// aggregated is the discovery document that lists everything at once.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// Read asks the API server what it serves: each resource once, in the first version that has it, and its other
// versions' kinds by Kinds. What could be learnt comes back also with an error: a group whose backend is down is
// reported as stale.
func Read(ctx context.Context, c *apiclient.Client) (*Catalog, error) {
	cat := NewCatalog()
	var errs []error
	for _, path := range []string{"/api", "/apis"} {
		list, err := fetch(ctx, c, path)
		if err != nil {
			return nil, err
		}
		for _, g := range list.Items {
			errs = append(errs, cat.addGroup(g))
		}
	}
	return cat, errors.Join(errs...)
}

func fetch(ctx context.Context, c *apiclient.Client, path string) (*apidiscoveryv2.APIGroupDiscoveryList, error) {
	body, err := c.Document(ctx, path, aggregated)
	if err != nil {
		return nil, fmt.Errorf("reading discovery from %s: %w", path, err)
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("decoding discovery from %s: %w", path, err)
	}
	if list.Kind != "APIGroupDiscoveryList" {
		return nil, fmt.Errorf("reading discovery from %s: the server answered with a %q, it is too old for aggregated discovery", path, list.Kind)
	}
	return &list, nil
}

// Catalog is what an API server serves.
type Catalog struct {
	// Resources has each resource once, in the server's preferred version.
	Resources []Resource
	kinds     map[schema.GroupVersionKind]Resource
}

// NewCatalog returns a catalog of the given resources, each in one version.
func NewCatalog(all ...Resource) *Catalog {
	c := &Catalog{Resources: all, kinds: map[schema.GroupVersionKind]Resource{}}
	for _, r := range all {
		c.kinds[r.GroupVersion().WithKind(r.Kind)] = r
	}
	return c
}

// ForKind finds the resource of a kind in whatever served version.
func (c *Catalog) ForKind(gvk schema.GroupVersionKind) (Resource, bool) {
	r, ok := c.kinds[gvk]
	return r, ok
}

// ForResource finds a resource in the version that the server prefers.
func (c *Catalog) ForResource(gr schema.GroupResource) (Resource, bool) {
	i := slices.IndexFunc(c.Resources, func(r Resource) bool { return r.GroupResource() == gr })
	if i < 0 {
		return Resource{}, false
	}
	return c.Resources[i], true
}

// ForGroupKind finds the resource of a kind in the version that the server prefers.
func (c *Catalog) ForGroupKind(gk schema.GroupKind) (Resource, bool) {
	i := slices.IndexFunc(c.Resources, func(r Resource) bool { return r.Group == gk.Group && r.Kind == gk.Kind })
	if i < 0 {
		return Resource{}, false
	}
	return c.Resources[i], true
}

func (c *Catalog) addGroup(g apidiscoveryv2.APIGroupDiscovery) error {
	var errs []error
	seen := map[string]bool{}
	for _, v := range g.Versions {
		if v.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
			errs = append(errs, fmt.Errorf("%s/%s: stale GroupVersion discovery", g.Name, v.Version))
		}
		for _, r := range v.Resources {
			if r.ResponseKind == nil {
				continue
			}
			served := Resource{
				GroupVersionResource: schema.GroupVersionResource{Group: g.Name, Version: v.Version,
					Resource: r.Resource},
				Kind: r.ResponseKind.Kind, Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace,
				Verbs: r.Verbs,
			}
			for _, sub := range r.Subresources {
				served.Subresources = append(served.Subresources, sub.Subresource)
			}
			c.kinds[schema.GroupVersionKind{Group: g.Name, Version: v.Version, Kind: served.Kind}] = served
			if !seen[r.Resource] {
				seen[r.Resource] = true
				c.Resources = append(c.Resources, served)
			}
		}
	}
	return errors.Join(errs...)
}
