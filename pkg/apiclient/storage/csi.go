package storage

import (
	storagev1 "k8s.io/api/storage/v1"

	"bonsai/pkg/apiclient"
)

// CSINodes gives access to csinodes.
func CSINodes(c *apiclient.Client) *apiclient.Resource[*storagev1.CSINode] {
	return apiclient.NewResource(c, storagev1.SchemeGroupVersion, "csinodes", &storagev1.CSINode{})
}

// CSIStorageCapacities gives access to csistoragecapacities.
func CSIStorageCapacities(c *apiclient.Client) *apiclient.Resource[*storagev1.CSIStorageCapacity] {
	return apiclient.NewResource(c, storagev1.SchemeGroupVersion, "csistoragecapacities",
		&storagev1.CSIStorageCapacity{})
}
