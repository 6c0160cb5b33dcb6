package cli

import (
	"fmt"
	"path"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// contained is a discovery cache on disk that keeps to its directory. client-go's names a file by the group and version
// that the server says, and so a hostile server could have files made anywhere. Such a group version counts as one that
// cannot be read.
type contained struct {
	discovery.CachedDiscoveryInterface
}

// ServerResourcesForGroupVersion returns the resources of a group version.
func (d *contained) ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error) {
	if !filepath.IsLocal(groupVersion) || path.Clean(groupVersion) != groupVersion {
		return nil, fmt.Errorf("the server's name %q is no name of a group and version", groupVersion)
	}
	return d.CachedDiscoveryInterface.ServerResourcesForGroupVersion(groupVersion)
}

// ServerGroupsAndResources returns all groups and resources.
func (d *contained) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	return discovery.ServerGroupsAndResources(d)
}

// ServerPreferredResources returns the resources in the versions that the server prefers.
func (d *contained) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	return discovery.ServerPreferredResources(d)
}

// ServerPreferredNamespacedResources returns those of them that are in namespaces.
func (d *contained) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	return discovery.ServerPreferredNamespacedResources(d)
}
