// Package storage gives access to the kinds of storage.k8s.io/v1 that components use.
package storage

import (
	storagev1 "k8s.io/api/storage/v1"

	"bonsai/pkg/apiclient"
)

// StorageClasses gives access to storageclasses.
func StorageClasses(c *apiclient.Client) *apiclient.Resource[*storagev1.StorageClass] {
	return apiclient.NewResource(c, storagev1.SchemeGroupVersion, "storageclasses", &storagev1.StorageClass{})
}

// CSIDrivers gives access to csidrivers.
func CSIDrivers(c *apiclient.Client) *apiclient.Resource[*storagev1.CSIDriver] {
	return apiclient.NewResource(c, storagev1.SchemeGroupVersion, "csidrivers", &storagev1.CSIDriver{})
}

// VolumeAttachments gives access to volumeattachments.
func VolumeAttachments(c *apiclient.Client) *apiclient.Resource[*storagev1.VolumeAttachment] {
	return apiclient.NewResource(c, storagev1.SchemeGroupVersion, "volumeattachments", &storagev1.VolumeAttachment{})
}

// VolumeAttributesClasses gives access to volumeattributesclasses.
func VolumeAttributesClasses(c *apiclient.Client) *apiclient.Resource[*storagev1.VolumeAttributesClass] {
	return apiclient.NewResource(c, storagev1.SchemeGroupVersion, "volumeattributesclasses",
		&storagev1.VolumeAttributesClass{})
}
