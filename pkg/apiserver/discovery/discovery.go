// Package discovery tells clients what the API server serves: the old documents (/api, /apis, /api/v1, /apis/G,
// /apis/G/V) and the aggregated one that replaces them all (apidiscovery.k8s.io). Every document is made from the resource
// rows once and served as bytes.
package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"bonsai/api/resources"
)

// Priority orders groups: a higher Group comes first; in equal ones, a higher Version; then the name. These are the numbers
// that upstream gives its groups, in steps; groups not listed (custom resources, aggregated servers) come after.
type Priority struct{ Group, Version int }

// Group is one API group with its versions, preferred first.
type Group struct {
	Name     string
	Versions []Version
	Priority Priority
}

// Version is one version of a group and its resources.
type Version struct {
	Name      string
	Resources []apidiscoveryv2.APIResourceDiscovery
}

// Config is what discovery is made from.
type Config struct {
	Rows []resources.Row
	// ServerAddress is host:port for /api's serverAddressByClientCIDRs.
	ServerAddress string
}

// Discovery serves the documents. It is safe for concurrent use.
type Discovery struct {
	address string

	mu     sync.RWMutex
	groups map[string]Group // of the rows and of SetGroup
	docs   *documents       // made on first demand, dropped by SetGroup
}

// New returns the discovery of cfg.Rows.
func New(cfg Config) *Discovery {
	d := &Discovery{address: cfg.ServerAddress, groups: map[string]Group{}}
	for _, g := range groupsOf(cfg.Rows) {
		d.groups[g.Name] = g
	}
	return d
}

// SetGroup adds or replaces a group (custom resources, aggregated APIs).
func (d *Discovery) SetGroup(g Group) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.groups[g.Name] = g
	d.docs = nil
}

// RemoveGroup takes a group out again.
func (d *Discovery) RemoveGroup(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.groups, name)
	d.docs = nil
}

// documents returns the current ones, made if need be.
func (d *Discovery) documents() (*documents, error) {
	d.mu.RLock()
	docs := d.docs
	d.mu.RUnlock()
	if docs != nil {
		return docs, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.docs == nil {
		groups := make([]Group, 0, len(d.groups))
		for _, g := range d.groups {
			groups = append(groups, g)
		}
		sortGroups(groups)
		docs, err := build(groups, d.address)
		if err != nil {
			return nil, fmt.Errorf("making the discovery documents: %w", err)
		}
		d.docs = docs
	}
	return d.docs, nil
}

func sortGroups(groups []Group) {
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Priority.Group, a.Priority.Group), cmp.Compare(b.Priority.Version, a.Priority.Version), cmp.Compare(a.Name, b.Name))
	})
}

// groupsOf sorts rows into groups, versions and resources.
func groupsOf(rows []resources.Row) []Group {
	type gv struct{ group, version string }
	found := map[gv][]apidiscoveryv2.APIResourceDiscovery{}
	versions := map[string][]string{}
	for i := range rows {
		r := &rows[i]
		for _, v := range servedVersions(r) {
			key := gv{r.GVK.Group, v}
			if _, ok := found[key]; !ok {
				versions[r.GVK.Group] = append(versions[r.GVK.Group], v)
			}
			found[key] = append(found[key], resourceOf(r, v))
		}
	}
	var groups []Group
	for name, vs := range versions {
		slices.SortFunc(vs, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
		g := Group{Name: name, Priority: priorityOf(name)}
		for _, v := range vs {
			list := found[gv{name, v}]
			slices.SortFunc(list, func(a, b apidiscoveryv2.APIResourceDiscovery) int { return cmp.Compare(a.Resource, b.Resource) })
			g.Versions = append(g.Versions, Version{Name: v, Resources: list})
		}
		groups = append(groups, g)
	}
	return groups
}

func servedVersions(r *resources.Row) []string {
	if len(r.Versions) == 0 {
		return []string{r.GVK.Version}
	}
	return r.Versions
}

// resourceOf describes one row in one version.
func resourceOf(r *resources.Row, v string) apidiscoveryv2.APIResourceDiscovery {
	gvk := schema.GroupVersionKind{Group: r.GVK.Group, Version: v, Kind: r.GVK.Kind}
	out := apidiscoveryv2.APIResourceDiscovery{
		Resource: r.Resource, SingularResource: r.Singular, ResponseKind: kindOf(gvk),
		Scope: apidiscoveryv2.ScopeCluster, ShortNames: r.ShortNames, Categories: r.Categories, Verbs: Verbs(r),
	}
	if r.Namespaced {
		out.Scope = apidiscoveryv2.ScopeNamespace
	}
	for _, s := range r.Subresources {
		sub := apidiscoveryv2.APISubresourceDiscovery{Subresource: s.Name, ResponseKind: kindOf(gvk), Verbs: s.Verbs}
		if s.GVK != nil {
			sub.ResponseKind = kindOf(*s.GVK)
		}
		out.Subresources = append(out.Subresources, sub)
	}
	slices.SortFunc(out.Subresources, func(a, b apidiscoveryv2.APISubresourceDiscovery) int {
		return cmp.Compare(a.Subresource, b.Subresource)
	})
	return out
}

func kindOf(gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}

// Verbs are those of a row's main resource, in the order of discovery.
func Verbs(r *resources.Row) []string {
	switch {
	case r.NotStored:
		return []string{"create"}
	case r.NoDeleteCollection:
		return []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	}
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}
