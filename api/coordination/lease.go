package coordination

import (
	coordinationv1 "k8s.io/api/coordination/v1"

	"bonsai/api/resources"
)

func leaseRow() resources.Row {
	return resources.Row{
		GVK: coordinationv1.SchemeGroupVersion.WithKind("Lease"), Resource: "leases", Singular: "lease",
		Namespaced:  true,
		StoragePath: "leases",
		New:         resources.Make[coordinationv1.Lease],
		NewList:     resources.Make[coordinationv1.LeaseList],
	}
}
