package rest

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
)

// form is one way to show stored items: as they are stored, as another kind (a view), or their metadata only. All of them
// are items with a codec, so that lists, gets and watches have one path.
type form struct {
	codec registry.Codec
	list  schema.GroupVersionKind
	// item gives the item to encode for a stored one; nil: the stored one itself, with its shared encodings.
	item func(*storage.Item) (*storage.Item, error)

	protobufHead []byte // of a list
}

func newForm(codec registry.Codec, listKind string, item func(*storage.Item) (*storage.Item, error)) *form {
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
func fullForm(row *resources.Row, stored registry.Codec) *form {
	if row.Stored == nil {
		return newForm(stored, row.GVK.Kind+"List", nil)
	}
	served := registry.NewProtobufCodec(row.GVK, row.New, nil)
	return newForm(served, row.GVK.Kind+"List", func(i *storage.Item) (*storage.Item, error) {
		obj, err := stored.Decode(i.Value, 0)
		if err != nil {
			return nil, err
		}
		return servedItem(served, i, row.Stored.ToServed(obj))
	})
}

func servedItem(served registry.Codec, i *storage.Item, obj runtime.Object) (*storage.Item, error) {
	d, err := served.Draft(obj)
	if err != nil {
		return nil, err
	}
	return &storage.Item{Key: i.Key, Value: d.Value, Revision: i.Revision, Facts: *d.Facts}, nil
}

// metadataForm shows PartialObjectMetadata of meta.k8s.io/version.
func metadataForm(stored registry.Codec, version string) *form {
	codec := registry.NewMetadataCodec(version)
	return newForm(codec, "PartialObjectMetadataList", func(i *storage.Item) (*storage.Item, error) { return codec.Item(stored, i) })
}
