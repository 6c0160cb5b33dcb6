package rest

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/storage"
)

// representation is one way to show stored items: as they are stored, in another version or as another kind (a view),
// or their metadata only. All of them are items with a codec, so that lists, gets and watches have one path.
type representation struct {
	codec registry.Codec
	list  schema.GroupVersionKind
	// item gives the item to encode for a stored one; nil: the stored one itself, with its shared encodings.
	item func(context.Context, *storage.Item) (*storage.Item, error)
	// page is item for many at once; nil: one by one. One call for a page saves a request to the webhook for each
	// object.
	page func(context.Context, []*storage.Item) ([]*storage.Item, error)
	// kept caches the results of item and page, if a webhook makes the representation; else nil.
	kept *cachedRepresentation

	dynamic      bool   // the objects have no Go type
	protobufHead []byte // of a list

	json, protobuf shared // what watchers see, where that is not what is stored
}

func newRepresentation(codec registry.Codec, listKind string,
	item func(context.Context, *storage.Item) (*storage.Item, error)) *representation {
	gvk := codec.GVK().GroupVersion().WithKind(listKind)
	return &representation{codec: codec, list: gvk, item: item, protobufHead: registry.EnvelopeHead(gvk)}
}

// of applies the representation to a stored item.
func (f *representation) of(ctx context.Context, stored *storage.Item) (*storage.Item, error) {
	if f.item == nil {
		return stored, nil
	}
	return f.item(ctx, stored)
}

// ofAll applies the representation to a page, in its order. The first error ends it: an answer has all objects or is an
// error.
func (f *representation) ofAll(ctx context.Context, stored []*storage.Item) ([]*storage.Item, error) {
	if f.item == nil {
		return stored, nil
	}
	if f.page != nil && len(stored) > 1 {
		return f.page(ctx, stored)
	}
	out := make([]*storage.Item, len(stored))
	for i, s := range stored {
		var err error
		if out[i], err = f.item(ctx, s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sharedIn returns what watchers of the representation share in a media type. It is nil if they use the encodings of
// the stored items, which are shared anyway.
func (f *representation) sharedIn(media string) *shared {
	switch {
	case f.item == nil:
		return nil
	case media == typeProtobuf:
		return &f.protobuf
	}
	return &f.json
}

// appendDocument appends a stored item in the representation and a media type. On an error the result is not to be
// used.
func (f *representation) appendDocument(ctx context.Context, b []byte, stored *storage.Item,
	media string) ([]byte, error) {
	item, err := f.of(ctx, stored)
	if err != nil {
		return b, err
	}
	if media != typeProtobuf {
		return f.codec.AppendJSON(b, item)
	}
	return registry.AppendDocument(f.codec.Messages(), b, item)
}

// fullRepresentation shows whole objects, in the version of a route. In the stored version they are the stored items. A
// version that a webhook converts is cached, because each conversion is a request to another server.
func fullRepresentation(rt *catalog.Route, stored registry.Codec) *representation {
	list := rt.Row.List()
	if rt.Version.FromHub == nil {
		f := newRepresentation(stored, list, nil)
		f.dynamic = rt.Version.Dynamic()
		return f
	}
	c := &convertedRepresentation{rt: rt, stored: stored,
		served: registry.NewKindCodec(rt.GVK, rt.Version.New, rt.Version.Fields, nil)}
	f := newRepresentation(c.served, list, c.item)
	f.dynamic = rt.Version.Dynamic()
	switch {
	case rt.Version.Remote:
		f.kept = &cachedRepresentation{make: c.all}
		f.item, f.page = f.kept.item, f.kept.page
	case rt.Version.FromHubAll != nil:
		f.page = c.all
	}
	return f
}

// convertedRepresentation shows objects in another version than the stored one.
type convertedRepresentation struct {
	rt             *catalog.Route
	stored, served registry.Codec
}

func (c *convertedRepresentation) item(ctx context.Context, i *storage.Item) (*storage.Item, error) {
	obj, err := c.stored.Decode(i.Value(), 0)
	if err != nil {
		return nil, err
	}
	if obj, err = c.rt.Version.FromHub(ctx, obj); err != nil {
		return nil, c.failed(i.Key, err)
	}
	return servedItem(c.served, i, obj)
}

func (c *convertedRepresentation) all(ctx context.Context, stored []*storage.Item) ([]*storage.Item, error) {
	objs := make([]runtime.Object, len(stored))
	var err error
	for n, i := range stored {
		if objs[n], err = c.stored.Decode(i.Value(), 0); err != nil {
			return nil, err
		}
	}
	if objs, err = c.rt.Version.FromHubAll(ctx, objs); err != nil {
		what := "a page of " + c.rt.Row.Resource
		if len(stored) == 1 {
			what = stored[0].Key
		}
		return nil, c.failed(what, err)
	}
	out := make([]*storage.Item, len(stored))
	for n, i := range stored {
		if out[n], err = servedItem(c.served, i, objs[n]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// failed adds the object's name to an error. A Status error is for clients already, and stays.
func (c *convertedRepresentation) failed(what string, err error) error {
	if isStatus(err) {
		return err
	}
	return fmt.Errorf("convert %s to %s: %w", what, c.rt.GVK.Version, err)
}

func servedItem(served registry.Codec, i *storage.Item, obj runtime.Object) (*storage.Item, error) {
	d, err := served.Draft(obj)
	if err != nil {
		return nil, err
	}
	return storage.NewItem(i.Key, d.Value, i.Revision, *d.Facts), nil
}

// metadataRepresentation shows PartialObjectMetadata of meta.k8s.io/version.
func metadataRepresentation(stored registry.Codec, version string) *representation {
	codec := registry.NewMetadataCodec(version)
	return newRepresentation(codec, "PartialObjectMetadataList",
		func(_ context.Context, i *storage.Item) (*storage.Item, error) { return codec.Item(stored, i) })
}
