package main

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/apiextensions"
	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
)

// jsonReaders read what another server has stored as JSON of kinds that are protobuf here, by the place of the kind
// below /registry/, such as "pods" and "services/specs".
type jsonReaders map[string]*registry.StoredJSON

// withStoredJSON adds to transform, which may be nil, that values are read which are JSON where this server stores
// protobuf. Kubernetes' own server reads both, too, whichever of them it writes. The values of custom resources are
// always JSON, and stay as they are.
func withStoredJSON(transform func(key string) storage.Transformer,
	rows []resources.Row) (func(key string) storage.Transformer, error) {
	if transform == nil {
		transform = func(string) storage.Transformer { return nil }
	}
	definitions, err := apiextensions.NewStoredReader()
	if err != nil {
		return nil, err
	}
	readers := jsonReaders{
		// What no row shows.
		"masterleases": registry.NewStoredJSON(registry.NewProtobufCodec(
			corev1.SchemeGroupVersion.WithKind("Endpoints"),
			func() runtime.Object { return &corev1.Endpoints{} }, nil), nil),
		"ranges/servicenodeports": registry.NewStoredJSON(registry.NewProtobufCodec(
			corev1.SchemeGroupVersion.WithKind("RangeAllocation"),
			func() runtime.Object { return &corev1.RangeAllocation{} }, nil), nil),
	}
	for i := range rows {
		row := &rows[i]
		codec, ok := registry.NewCodec(row).(*registry.ProtobufCodec)
		if !ok || row.NotStored || row.Stored != nil {
			continue
		}
		var read func(document []byte) (runtime.Object, error)
		if row.GVK.Group == apiextensionsv1.GroupName {
			read = definitions
		}
		readers[row.StoragePath] = registry.NewStoredJSON(codec, read)
	}
	return func(key string) storage.Transformer {
		inner := transform(key)
		if reader := readers.of(key); reader != nil {
			return reader.Around(inner)
		}
		return inner
	}, nil
}

// of returns what reads the value of a key, nil if its kind is none of them. It is asked for every value that comes
// from etcd, so it makes no memory.
func (r jsonReaders) of(key string) *registry.StoredJSON {
	place, ok := strings.CutPrefix(key, "/registry/")
	if !ok {
		return nil
	}
	first := strings.IndexByte(place, '/')
	if first < 0 {
		return nil
	}
	if reader := r[place[:first]]; reader != nil {
		return reader
	}
	if second := strings.IndexByte(place[first+1:], '/'); second >= 0 {
		place = place[:first+1+second]
	}
	return r[place]
}
