package discovery

import (
	"cmp"
	"slices"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"bonsai/api/apiregistration"
	"bonsai/pkg/apiserver/catalog"
)

// Registered is what is known of a group version besides what this server serves of it.
type Registered struct {
	GroupVersion schema.GroupVersion
	// Priority is its place among all.
	Priority apiregistration.Priority
	// Remote tells that another server serves it. Resources are what that one said it serves; it is Stale while it
	// cannot be asked.
	Remote    bool
	Resources []apidiscoveryv2.APIResourceDiscovery
	Stale     bool
}

// group is one API group with its versions, preferred first.
type group struct {
	name     string
	versions []groupVersion
	priority int32
}

// groupVersion is one version of a group and its resources.
type groupVersion struct {
	name      string
	priority  int32
	resources []resource
	remote    bool
	freshness apidiscoveryv2.DiscoveryFreshness
}

// resource is a resource in one version, and the kind that its objects are stored as; empty if they are not stored.
type resource struct {
	apidiscoveryv2.APIResourceDiscovery
	stored schema.GroupVersionKind
}

// groupsOf sorts what is served, here and by others, into groups, versions and resources. Groups with a higher priority
// come first, in them versions with a higher priority; of equal ones the name decides. A group has the highest priority
// of its versions. What another server serves this one does not, as it hands requests for it on.
func groupsOf(now *catalog.Snapshot, registered []Registered) []group {
	versions := map[string][]groupVersion{}
	priorities := map[string]int32{}
	add := func(gv schema.GroupVersion, p apiregistration.Priority, v groupVersion) {
		v.name, v.priority = gv.Version, p.Version
		versions[gv.Group] = append(versions[gv.Group], v)
		priorities[gv.Group] = max(priorities[gv.Group], p.Group)
	}
	known := make(map[schema.GroupVersion]Registered, len(registered))
	for _, r := range registered {
		known[r.GroupVersion] = r
		if !r.Remote {
			continue
		}
		v := groupVersion{remote: true, freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		if r.Stale {
			v.freshness = apidiscoveryv2.DiscoveryFreshnessStale
		}
		for _, res := range r.Resources {
			v.resources = append(v.resources, resource{APIResourceDiscovery: res})
		}
		add(r.GroupVersion, r.Priority, v)
	}
	for _, gv := range now.GroupVersions() {
		r, is := known[gv]
		if r.Remote {
			continue
		}
		if !is {
			r.Priority = priorityOf(now, gv)
		}
		v := groupVersion{freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
		for _, rt := range now.Routes(gv) {
			v.resources = append(v.resources, resourceOf(rt))
		}
		slices.SortFunc(v.resources, func(a, b resource) int { return cmp.Compare(a.Resource, b.Resource) })
		add(gv, r.Priority, v)
	}
	groups := make([]group, 0, len(versions))
	for name, vs := range versions {
		slices.SortFunc(vs, func(a, b groupVersion) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), version.CompareKubeAwareVersionStrings(b.name, a.name))
		})
		groups = append(groups, group{name: name, versions: vs, priority: priorities[name]})
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.name, b.name))
	})
	return groups
}

// priorityOf is the place of what has no APIService, or not yet.
func priorityOf(now *catalog.Snapshot, gv schema.GroupVersion) apiregistration.Priority {
	if slices.ContainsFunc(now.Routes(gv), func(rt *catalog.Route) bool { return !rt.Row.Dynamic() }) {
		return apiregistration.BuiltIn(gv)
	}
	return apiregistration.CustomResources()
}

// resourceOf describes one row in one version.
func resourceOf(rt *catalog.Route) resource {
	r, gvk := rt.Row, rt.GVK
	out := apidiscoveryv2.APIResourceDiscovery{
		Resource: r.Resource, SingularResource: r.Singular, ResponseKind: kindIn(rt, gvk),
		Scope: apidiscoveryv2.ScopeCluster, ShortNames: r.ShortNames, Categories: r.Categories, Verbs: verbs(r),
	}
	if r.Namespaced {
		out.Scope = apidiscoveryv2.ScopeNamespace
	}
	for _, s := range r.Subresources {
		if !rt.Version.Has(s.Name) {
			continue
		}
		sub := apidiscoveryv2.APISubresourceDiscovery{Subresource: s.Name, ResponseKind: kindIn(rt, gvk),
			Verbs: s.Verbs}
		if s.GVK != nil {
			sub.ResponseKind = kindIn(rt, *s.GVK)
		}
		out.Subresources = append(out.Subresources, sub)
	}
	if r.NotStored {
		return resource{APIResourceDiscovery: out}
	}
	return resource{out, r.StorageGVK()}
}

// kindIn names a kind where rt stands. Group and version are left out where they are rt's own, except of custom
// resources: upstream does so, and clients take what is left out for the group and version that they read it in.
func kindIn(rt *catalog.Route, gvk schema.GroupVersionKind) *metav1.GroupVersionKind {
	if gvk.GroupVersion() == rt.GVK.GroupVersion() && !rt.Version.Dynamic() {
		return &metav1.GroupVersionKind{Kind: gvk.Kind}
	}
	return &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}
