package registry

import (
	"encoding/binary"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/storage"
)

// Codec turns the objects of one kind into the bytes that are stored and back, and gives clients their encodings. Bytes
// come first: what a client is sent is made of the stored bytes with the resourceVersion put in, and an object is
// decoded only where the bytes are in another format than the client's; then the result is kept with the item and
// shared.
//
// What holds for every implementation, and is tested on each:
//   - Stored bytes have no resourceVersion: it is the item's Revision, which is put in where it is not 0 (a dry run's).
//   - Equal objects have equal bytes, whatever their resourceVersion: a write that changes nothing is seen by comparing
//     bytes.
//   - What is decoded equals what was drafted; nothing that was stored is lost, not even what this server does not
//     know.
//   - Methods that append return what they were given on an error; nothing that they are given is changed or kept.
//   - Bytes that nobody could have stored give an error and no panic, and none of their neighbours is touched.
//
// A codec is safe for concurrent use.
type Codec interface {
	// GVK is the kind of what is stored.
	GVK() schema.GroupVersionKind
	// New returns an empty object of the kind, with its kind set.
	New() runtime.Object
	// MediaTypes are those in which whole objects are sent and received, the one for clients without a wish first.
	// Protobuf is among them where Messages is not nil.
	MediaTypes() []string

	// Draft returns obj as it is stored, with its Facts: fields have metadata.name always and metadata.namespace where
	// there is one. obj keeps its resourceVersion, and becomes what will be decoded: empty lists are none where that is
	// so in storage.
	Draft(obj runtime.Object) (storage.Draft, error)
	// Decode returns a new object from a stored value, with the resourceVersion put in unless revision is 0.
	Decode(value []byte, revision int64) (runtime.Object, error)
	// FactsOf is the storage.FactsFunc of the kind: the Facts that Draft gave with value.
	FactsOf(value []byte) (storage.Facts, error)
	// Metadata decodes an item's metadata only.
	Metadata(item *storage.Item) (*metav1.ObjectMeta, error)
	// MetadataMessage returns the metadata as a protobuf message without resourceVersion, for answers that show nothing
	// else.
	MetadataMessage(item *storage.Item) ([]byte, error)

	// AppendJSON appends the item's document, without a newline at its end.
	AppendJSON(b []byte, item *storage.Item) ([]byte, error)
	// ElementSize is the length of what AppendElement appends; while the item stands, that cannot fail any more. A list
	// asks before its first byte, while an error can still be answered.
	ElementSize(item *storage.Item) (int, error)
	// AppendElement appends the document as lists have it: those of Go types without kind and apiVersion.
	AppendElement(b []byte, item *storage.Item) ([]byte, error)
	// Share lets the item have the JSON of obj, which must be what it holds, if JSON cannot be made of its bytes alone.
	Share(item *storage.Item, obj runtime.Object) error

	// Messages is for kinds with a protobuf form; nil for others.
	Messages() Messages
}

// Messages gives the items of one kind as protobuf.
type Messages interface {
	// Head is what precedes the message's length in a document.
	Head() []byte
	// MessageSize is the length of what AppendMessage appends; while the item stands, that cannot fail any more.
	MessageSize(item *storage.Item) (int, error)
	// AppendMessage appends the item's message with its resourceVersion, as lists have it.
	AppendMessage(b []byte, item *storage.Item) ([]byte, error)
}

// NewCodec returns the codec of row's stored kind.
func NewCodec(row *resources.Row) Codec {
	c := NewKindCodec(row.StoredGVK(), row.New, row.Fields, row.Decoded)
	if j, ok := c.(*JSONCodec); ok {
		j.upgrade = row.Upgrade
	}
	if p, ok := c.(*ProtobufCodec); ok {
		p.storeAs(row.StorageGVK().Version)
		if row.KeepsEmpty {
			p.empty = nil
		}
	}
	return c
}

// NewKindCodec returns the codec of a kind in the format of its objects: JSON for unstructured ones, protobuf for Go
// types. fields reads what can be selected by, decoded completes what was read; both may be nil.
func NewKindCodec(gvk schema.GroupVersionKind, newObject func() runtime.Object, fields func(runtime.Object) fields.Set,
	decoded func(runtime.Object)) Codec {
	if _, ok := newObject().(runtime.Unstructured); ok {
		return NewJSONCodec(gvk, newObject, fields, decoded)
	}
	c := NewProtobufCodec(gvk, newObject, fields)
	c.decoded = decoded
	return c
}

// AppendDocument appends an item as a protobuf document of its own.
func AppendDocument(m Messages, b []byte, item *storage.Item) ([]byte, error) {
	size, err := m.MessageSize(item)
	if err != nil {
		return b, err
	}
	b = slices.Grow(b, len(m.Head())+binary.MaxVarintLen64+size+len(EnvelopeTail))
	b = binary.AppendUvarint(append(b, m.Head()...), uint64(size))
	if b, err = m.AppendMessage(b, item); err != nil {
		return b, err
	}
	return append(b, EnvelopeTail...), nil
}

// DocumentSize is the length of what AppendDocument appends.
func DocumentSize(m Messages, item *storage.Item) (int, error) {
	size, err := m.MessageSize(item)
	return len(m.Head()) + UvarintLen(uint64(size)) + size + len(EnvelopeTail), err
}

// Object decodes an item.
func Object(c Codec, item *storage.Item) (runtime.Object, error) {
	obj, err := c.Decode(item.Value(), item.Revision)
	if err != nil {
		return nil, storage.At("read", item.Key, err)
	}
	return obj, nil
}
