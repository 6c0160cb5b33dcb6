// Package storagemigration defines the kind of the API group storagemigration.k8s.io (v1): its row, validation,
// strategies and table columns, as pure functions. A StorageVersionMigration has every object of a resource written
// again, in the version and with the encryption key that the server stores objects with by now.
package storagemigration

import "bonsai/api/resources"

// Rows returns the resources of the group.
func Rows() []resources.Row { return []resources.Row{migrationRow()} }
