package registry

import (
	"encoding/binary"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/storage"
)

// MetadataCodec is the codec of PartialObjectMetadata, as which Item shows the items of every kind.
type MetadataCodec struct{ *ProtobufCodec }

// NewMetadataCodec returns the codec of PartialObjectMetadata of meta.k8s.io/version.
func NewMetadataCodec(version string) *MetadataCodec {
	gvk := schema.GroupVersionKind{Group: metav1.GroupName, Version: version, Kind: "PartialObjectMetadata"}
	c := NewProtobufCodec(gvk, func() runtime.Object { return &metav1.PartialObjectMetadata{} }, nil)
	c.jsonHead = nil // an element of a PartialObjectMetadataList has its kind
	return &MetadataCodec{c}
}

// Item returns an item of this codec with the metadata of one whose codec is stored.
func (c *MetadataCodec) Item(stored Codec, item *storage.Item) (*storage.Item, error) {
	meta, err := stored.MetadataMessage(item)
	if err != nil {
		return nil, fmt.Errorf("metadata of %s: %w", item.Key, err)
	}
	size := 1 + UvarintLen(uint64(len(meta))) + len(meta)
	value := make([]byte, 0, len(c.stored)+UvarintLen(uint64(size))+size+len(EnvelopeTail))
	value = binary.AppendUvarint(append(value, c.stored...), uint64(size))
	value = binary.AppendUvarint(append(value, tagMetadata), uint64(len(meta)))
	value = append(append(value, meta...), EnvelopeTail...)
	facts := item.Facts
	facts.Shared = nil // of another value
	return storage.NewItem(item.Key, value, item.Revision, facts), nil
}
