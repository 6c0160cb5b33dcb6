// Package node gives access to the kinds of node.k8s.io/v1 that components use.
package node

import (
	nodev1 "k8s.io/api/node/v1"

	"bonsai/pkg/apiclient"
)

// RuntimeClasses gives access to runtimeclasses.
func RuntimeClasses(c *apiclient.Client) *apiclient.Resource[*nodev1.RuntimeClass] {
	return apiclient.NewResource(c, nodev1.SchemeGroupVersion, "runtimeclasses", &nodev1.RuntimeClass{})
}
