package catalog

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Snapshot is all that is served at one moment. It does not change.
type Snapshot struct {
	generation uint64
	resources  []*Resource
	routes     map[schema.GroupVersionResource]*Route
	byName     map[schema.GroupResource]*Resource
	groups     map[string]bool
}

func newSnapshot(generation uint64, all []*Resource) *Snapshot {
	s := &Snapshot{generation: generation, resources: all, routes: map[schema.GroupVersionResource]*Route{}, byName: map[schema.GroupResource]*Resource{},
		groups: map[string]bool{}}
	for _, r := range all {
		s.byName[r.Row.GroupResource()] = r
		s.groups[r.Row.GVK.Group] = true
		for _, rt := range r.routes {
			s.routes[rt.GVR()] = rt
		}
	}
	return s
}

// Generation grows with every change: what was made of a snapshot is good as long as the generation is the same.
func (s *Snapshot) Generation() uint64 { return s.generation }

// Resources are all resources, in the order they came. The slice is shared.
func (s *Snapshot) Resources() []*Resource { return s.resources }

// Resource returns the resource of this name, nil if it is not served.
func (s *Snapshot) Resource(gr schema.GroupResource) *Resource { return s.byName[gr] }

// Route returns a resource in a version, nil if it is not served in it.
func (s *Snapshot) Route(gvr schema.GroupVersionResource) *Route { return s.routes[gvr] }

// HasGroup tells whether anything of a group is served.
func (s *Snapshot) HasGroup(name string) bool { return s.groups[name] }
