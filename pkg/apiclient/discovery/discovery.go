// Package discovery gives access to the kinds of discovery.k8s.io/v1 that components use.
package discovery

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	"bonsai/pkg/apiclient"
)

// EndpointSlices gives access to endpointslices.
func EndpointSlices(c *apiclient.Client) *apiclient.Resource[*discoveryv1.EndpointSlice] {
	return apiclient.NewResource(c, discoveryv1.SchemeGroupVersion, "endpointslices", &discoveryv1.EndpointSlice{})
}
