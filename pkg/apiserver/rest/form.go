package rest

import (
	"encoding/binary"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
)

// form is one way to show stored items: as they are stored, as another kind (a view), or their metadata only. All of them
// are items with a codec, so that lists, gets and watches have one path.
type form struct {
	codec *registry.Codec
	list  schema.GroupVersionKind
	// item gives the item to encode for a stored one; nil: the stored one itself, with its shared encodings.
	item func(*storage.Item) (*storage.Item, error)

	protobufHead []byte // of a list
	kinds        bool   // JSON items of lists keep kind and apiVersion
}

func newForm(codec *registry.Codec, listKind string, item func(*storage.Item) (*storage.Item, error)) *form {
	gvk := codec.GVK().GroupVersion().WithKind(listKind)
	return &form{codec: codec, list: gvk, item: item, protobufHead: registry.EnvelopeHead(gvk)}
}

// of applies the form to a stored item.
func (f *form) of(stored *storage.Item) (*storage.Item, error) {
	if f.item == nil {
		return stored, nil
	}
	return f.item(stored)
}

// ofAll applies the form to a page.
func (f *form) ofAll(stored []*storage.Item) ([]*storage.Item, error) {
	if f.item == nil {
		return stored, nil
	}
	out := make([]*storage.Item, len(stored))
	for i, s := range stored {
		var err error
		if out[i], err = f.item(s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fullForm shows objects as clients of row see them.
func fullForm(row *resources.Row, stored *registry.Codec) *form {
	if row.Stored == nil {
		return newForm(stored, row.GVK.Kind+"List", nil)
	}
	served := registry.NewKindCodec(row.GVK, row.New, nil)
	return newForm(served, row.GVK.Kind+"List", func(i *storage.Item) (*storage.Item, error) {
		obj, err := stored.Decode(i.Value, 0)
		if err != nil {
			return nil, err
		}
		return servedItem(served, i, row.Stored.ToServed(obj))
	})
}

func servedItem(served *registry.Codec, i *storage.Item, obj runtime.Object) (*storage.Item, error) {
	value, err := served.Encode(obj)
	if err != nil {
		return nil, err
	}
	return &storage.Item{Key: i.Key, Value: value, Revision: i.Revision, Facts: i.Facts}, nil
}

// metadataForm shows PartialObjectMetadata of meta.k8s.io/version. It copies the encoded metadata and decodes nothing.
func metadataForm(stored *registry.Codec, version string) *form {
	gvk := schema.GroupVersionKind{Group: metav1.GroupName, Version: version, Kind: "PartialObjectMetadata"}
	codec := registry.NewKindCodec(gvk, func() runtime.Object { return &metav1.PartialObjectMetadata{} }, nil)
	f := newForm(codec, "PartialObjectMetadataList", func(i *storage.Item) (*storage.Item, error) {
		raw, err := stored.Raw(i.Value)
		if err != nil {
			return nil, fmt.Errorf("metadata of %s: %w", i.Key, err)
		}
		meta, err := registry.MetadataOf(raw)
		if err != nil {
			return nil, fmt.Errorf("metadata of %s: %w", i.Key, err)
		}
		const tag = 1<<3 | 2
		message := binary.AppendUvarint([]byte{tag}, uint64(len(meta)))
		message = append(message, meta...)
		value := binary.AppendUvarint(append([]byte(nil), codec.Head()...), uint64(len(message)))
		value = append(append(value, message...), registry.EnvelopeTail...)
		return &storage.Item{Key: i.Key, Value: value, Revision: i.Revision, Facts: i.Facts}, nil
	})
	f.kinds = true
	return f
}
