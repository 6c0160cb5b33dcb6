package cli

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// readOnce is a discovery cache on disk that reads all its files once: the mapper, the short names and the categories
// each ask for all groups, and reading and decoding their files every time was a fifth of a short command's CPU. Its
// answers are shared: they must not be changed. What failed in part is asked for again.
type readOnce struct {
	discovery.CachedDiscoveryInterface

	mu     sync.Mutex
	known  bool
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
}

// ServerGroupsAndResources returns all groups and resources.
func (d *readOnce) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known {
		return d.groups, d.lists, nil
	}
	groups, lists, err := d.CachedDiscoveryInterface.ServerGroupsAndResources()
	d.known, d.groups, d.lists = err == nil, groups, lists
	return groups, lists, err
}

// Invalidate forgets what was read, here and on disk.
func (d *readOnce) Invalidate() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.CachedDiscoveryInterface.Invalidate()
	d.known, d.groups, d.lists = false, nil, nil
}
