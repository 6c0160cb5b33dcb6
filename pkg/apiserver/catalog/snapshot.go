package catalog

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Snapshot is all that is served at one moment. It does not change.
type Snapshot struct {
	generation uint64
	over       chan struct{} // closed when it is not what is served any more
	resources  []*Resource
	routes     map[schema.GroupVersionResource]*Route
	byName     map[schema.GroupResource]*Resource
	groups     map[string]bool
	versions   []schema.GroupVersion
	byVersion  map[schema.GroupVersion][]*Route
}

func newSnapshot(generation uint64, all []*Resource) *Snapshot {
	s := &Snapshot{generation: generation, over: make(chan struct{}), resources: all,
		routes: map[schema.GroupVersionResource]*Route{}, byName: map[schema.GroupResource]*Resource{},
		groups: map[string]bool{}, byVersion: map[schema.GroupVersion][]*Route{}}
	for _, r := range all {
		s.byName[r.Row.GroupResource()] = r
		s.groups[r.Row.GVK.Group] = s.groups[r.Row.GVK.Group] || !r.Row.Dynamic() && len(r.routes) > 0
		for _, rt := range r.routes {
			s.routes[rt.GVR()] = rt
			gv := rt.GVK.GroupVersion()
			if s.byVersion[gv] == nil {
				s.versions = append(s.versions, gv)
			}
			s.byVersion[gv] = append(s.byVersion[gv], rt)
		}
	}
	return s
}

// Generation grows with every change: what was made of a snapshot is good as long as the generation is the same.
func (s *Snapshot) Generation() uint64 { return s.generation }

// Over is closed when this is not what is served any more.
func (s *Snapshot) Over() <-chan struct{} { return s.over }

// Resources are all resources, in the order they came. The slice is shared.
func (s *Snapshot) Resources() []*Resource { return s.resources }

// Resource returns the resource of this name, nil if it is not served.
func (s *Snapshot) Resource(gr schema.GroupResource) *Resource { return s.byName[gr] }

// Route returns a resource in a version, nil if it is not served in it.
func (s *Snapshot) Route(gvr schema.GroupVersionResource) *Route { return s.routes[gvr] }

// HasGroup reports whether anything of a group is served whose objects have Go types: upstream's server knows only
// these groups itself, and answers with a Status for what they do not have.
func (s *Snapshot) HasGroup(name string) bool { return s.groups[name] }

// GroupVersions are those of what is served, in the order it came. The slice is shared.
func (s *Snapshot) GroupVersions() []schema.GroupVersion { return s.versions }

// Routes are what is served in a group version, in the order it came. The slice is shared.
func (s *Snapshot) Routes(gv schema.GroupVersion) []*Route { return s.byVersion[gv] }
