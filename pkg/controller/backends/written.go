package backends

import (
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"bonsai/pkg/controller"
)

// Written has, per Service, what was last written of each of its EndpointSlices. Until a cache has caught up with that,
// reconciling would repeat what is done.
type Written struct {
	mu sync.Mutex
	// versions are resourceVersions by the slice's name, "" for a deletion.
	versions map[controller.Key]map[string]string
}

// NewWritten returns a Written of nothing.
func NewWritten() *Written { return &Written{versions: map[controller.Key]map[string]string{}} }

// Remember notes that a slice of the Service was written and has this resourceVersion, or that it was deleted ("").
func (w *Written) Remember(service controller.Key, slice, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.versions[service] == nil {
		w.versions[service] = map[string]string{}
	}
	w.versions[service][slice] = version
}

// CaughtUp reports whether the cache has seen all writes, and forgets those that it has; the watch event that it misses
// brings the Service back, also if that is gone and recreated meanwhile. seen is up to where the cache was known to be
// before have was read from it.
func (w *Written) CaughtUp(service controller.Key, have []*discoveryv1.EndpointSlice, seen string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	cached := map[string]*discoveryv1.EndpointSlice{}
	for _, s := range have {
		cached[s.Name] = s
	}
	for name, version := range w.versions[service] {
		s := cached[name]
		switch {
		case version == "" && s != nil && s.DeletionTimestamp == nil:
			return false
		case version != "" && s != nil && older(s.ResourceVersion, version):
			return false
		// it has not arrived yet; else somebody deleted it since
		case version != "" && s == nil && older(seen, version):
			return false
		}
		delete(w.versions[service], name)
	}
	delete(w.versions, service)
	return true
}

func older(version, than string) bool {
	cmp, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && cmp < 0
}
