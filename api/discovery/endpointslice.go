package discovery

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	"bonsai/api/resources"
)

func endpointSliceRow() resources.Row {
	return resources.Row{
		GVK: discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), Resource: "endpointslices", Singular: "endpointslice",
		Namespaced:  true,
		StoragePath: "endpointslices",
		New:         resources.Make[discoveryv1.EndpointSlice],
		NewList:     resources.Make[discoveryv1.EndpointSliceList],
	}
}
