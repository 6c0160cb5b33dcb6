package backends

import (
	discoveryv1 "k8s.io/api/discovery/v1"

	"bonsai/pkg/controller"
)

// SliceIndex finds EndpointSlices by the Service that their label names. The controllers of slices share it.
type SliceIndex struct {
	index controller.Index[*discoveryv1.EndpointSlice]
}

// NewSliceIndex adds the index to slices, if it is not there yet.
func NewSliceIndex(slices *controller.Informer[*discoveryv1.EndpointSlice]) SliceIndex {
	return SliceIndex{controller.NewIndex(slices, "service", func(s *discoveryv1.EndpointSlice) []string {
		return []string{controller.Key{Namespace: s.Namespace, Name: s.Labels[discoveryv1.LabelServiceName]}.String()}
	})}
}

// Of returns the cached EndpointSlices whose label names a Service, whoever manages them.
func (x SliceIndex) Of(service controller.Key) []*discoveryv1.EndpointSlice {
	return x.index.At(service.String())
}
