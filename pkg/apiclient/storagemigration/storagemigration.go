// Package storagemigration gives access to the kind of storagemigration.k8s.io/v1.
package storagemigration

import (
	migrationv1 "k8s.io/api/storagemigration/v1"

	"bonsai/pkg/apiclient"
)

// StorageVersionMigrations gives access to storageversionmigrations.
func StorageVersionMigrations(c *apiclient.Client) *apiclient.Resource[*migrationv1.StorageVersionMigration] {
	return apiclient.NewResource(c, migrationv1.SchemeGroupVersion, "storageversionmigrations",
		&migrationv1.StorageVersionMigration{})
}
