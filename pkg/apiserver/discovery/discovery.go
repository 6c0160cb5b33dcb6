// Package discovery tells clients what the API server serves: the old documents (/api, /apis, /api/v1, /apis/G,
// /apis/G/V) and the aggregated one that replaces them all (apidiscovery.k8s.io). The documents are made once for each state of
// the catalog, when somebody asks, and served as bytes.
package discovery

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/catalog"
)

// priority orders groups: a higher group comes first; in equal ones, a higher version; then the name. These are the numbers
// that upstream gives its groups, in steps; groups not listed (custom resources, aggregated servers) come after.
type priority struct{ group, version int }

// group is one API group with its versions, preferred first.
type group struct {
	name     string
	versions []groupVersion
	priority priority
}

// groupVersion is one version of a group and its resources.
type groupVersion struct {
	name      string
	resources []resource
}

// resource is a resource in one version, and the kind that its objects are stored as.
type resource struct {
	apidiscoveryv2.APIResourceDiscovery
	stored schema.GroupVersionKind
}

// Config is what discovery is made from.
type Config struct {
	Catalog *catalog.Catalog
	// ServerAddress is host:port for /api's serverAddressByClientCIDRs.
	ServerAddress string
}

// Discovery serves the documents. It is safe for concurrent use.
type Discovery struct {
	cfg  Config
	mu   sync.Mutex                // while documents are made
	docs atomic.Pointer[documents] // of the generation that was asked for last
}

// New returns the discovery of what cfg.Catalog has.
func New(cfg Config) *Discovery { return &Discovery{cfg: cfg} }

// documents returns the current ones, made if need be.
func (d *Discovery) documents() (*documents, error) {
	now := d.cfg.Catalog.Snapshot()
	if docs := d.docs.Load(); docs != nil && docs.generation == now.Generation() {
		return docs, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now = d.cfg.Catalog.Snapshot()
	if docs := d.docs.Load(); docs != nil && docs.generation == now.Generation() {
		return docs, nil
	}
	docs, err := build(groupsOf(now), d.cfg.ServerAddress)
	if err != nil {
		return nil, fmt.Errorf("making the discovery documents: %w", err)
	}
	docs.generation = now.Generation()
	d.docs.Store(docs)
	return docs, nil
}

// groupsOf sorts what is served into groups, versions and resources.
func groupsOf(now *catalog.Snapshot) []group {
	found := map[schema.GroupVersion][]resource{}
	versions := map[string][]string{}
	for _, r := range now.Resources() {
		for _, rt := range r.Routes() {
			gv := rt.GVK.GroupVersion()
			if _, ok := found[gv]; !ok {
				versions[gv.Group] = append(versions[gv.Group], gv.Version)
			}
			found[gv] = append(found[gv], resourceOf(rt))
		}
	}
	var groups []group
	for name, vs := range versions {
		slices.SortFunc(vs, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
		g := group{name: name, priority: priorityOf(name)}
		for _, v := range vs {
			list := found[schema.GroupVersion{Group: name, Version: v}]
			slices.SortFunc(list, func(a, b resource) int { return cmp.Compare(a.Resource, b.Resource) })
			g.versions = append(g.versions, groupVersion{name: v, resources: list})
		}
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.priority.group, a.priority.group), cmp.Compare(b.priority.version, a.priority.version), cmp.Compare(a.name, b.name))
	})
	return groups
}

// resourceOf describes one row in one version.
func resourceOf(rt *catalog.Route) resource {
	r, gvk := rt.Row, rt.GVK
	out := apidiscoveryv2.APIResourceDiscovery{
		Resource: r.Resource, SingularResource: r.Singular, ResponseKind: kindOf(gvk),
		Scope: apidiscoveryv2.ScopeCluster, ShortNames: r.ShortNames, Categories: r.Categories, Verbs: Verbs(r),
	}
	if r.Namespaced {
		out.Scope = apidiscoveryv2.ScopeNamespace
	}
	for _, s := range r.Subresources {
		if !rt.Version.Has(s.Name) {
			continue
		}
		sub := apidiscoveryv2.APISubresourceDiscovery{Subresource: s.Name, ResponseKind: kindOf(gvk), Verbs: s.Verbs}
		if s.GVK != nil {
			sub.ResponseKind = kindOf(*s.GVK)
		}
		out.Subresources = append(out.Subresources, sub)
	}
	return resource{out, r.StoredGVK()}
}

func kindOf(gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}

// Verbs are those of a row's main resource, in the order of upstream's discovery.
func Verbs(r *resources.Row) []string {
	switch {
	case r.NotStored:
		return []string{"create"}
	case r.Ending != "":
		return []string{"delete", "deletecollection", "get", "list", "watch"}
	case r.NoDeleteCollection:
		return []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	}
	if r.Dynamic() {
		return []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	}
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}
