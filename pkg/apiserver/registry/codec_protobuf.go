package registry

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/pkg/apiserver/storage"
)

// ProtobufCodec is the Codec of Go types with a protobuf form. A protobuf answer is the stored message with the
// resourceVersion appended (protobuf merges repeated messages); a JSON answer is made once per item and shared.
//
// All fields are set when the codec is made. Many requests use it at the same time without a lock.
type ProtobufCodec struct {
	gvk     schema.GroupVersionKind
	new     func() runtime.Object
	facts   factReader
	decoded func(runtime.Object) // completes what was decoded; may be nil
	empty   *emptyLists          // what becomes none when it is drafted

	head     []byte // of the protobuf envelope of answers
	stored   []byte // of the envelope of stored values: the same, or that of storedAs
	storedAs schema.GroupVersion
	jsonHead []byte // {"kind":"Pod","apiVersion":"v1", which elements of lists leave out; nil: they do not
	json     storage.Form
	encode   func(*storage.Item) (storage.Bytes, error)
	sets     fieldSets
}

var (
	_ Codec    = (*ProtobufCodec)(nil)
	_ Messages = (*ProtobufCodec)(nil)
)

// NewProtobufCodec returns the codec of a kind whose objects are Messages; fields may be nil.
func NewProtobufCodec(gvk schema.GroupVersionKind, newObject func() runtime.Object,
	fields func(runtime.Object) fields.Set) *ProtobufCodec {
	c := &ProtobufCodec{gvk: gvk, new: newObject, facts: factReader{fields: fields}}
	c.head = EnvelopeHead(c.gvk)
	c.storeAs(gvk.Version)
	c.jsonHead = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, c.gvk.Kind, c.gvk.GroupVersion().String())
	c.encode = c.makeJSON
	c.empty = emptyListsOf(reflect.TypeOf(newObject()))
	return c
}

// storeAs makes stored values name another version of the kind, whose messages have the same fields.
func (c *ProtobufCodec) storeAs(version string) {
	c.storedAs = schema.GroupVersion{Group: c.gvk.Group, Version: version}
	c.stored = EnvelopeHead(c.storedAs.WithKind(c.gvk.Kind))
}

// MediaTypes implements Codec.
func (c *ProtobufCodec) MediaTypes() []string {
	return []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML, runtime.ContentTypeProtobuf}
}

// Messages implements Codec.
func (c *ProtobufCodec) Messages() Messages { return c }

// GVK implements Codec.
func (c *ProtobufCodec) GVK() schema.GroupVersionKind { return c.gvk }

// New implements Codec.
func (c *ProtobufCodec) New() runtime.Object {
	obj := c.new()
	obj.GetObjectKind().SetGroupVersionKind(c.gvk)
	return obj
}

// Envelop encodes m behind head (of EnvelopeHead) as one document.
func Envelop(head []byte, m Message) ([]byte, error) {
	size := m.Size()
	b := make([]byte, 0, len(head)+UvarintLen(uint64(size))+size+len(EnvelopeTail))
	b = append(b, head...)
	b = binary.AppendUvarint(b, uint64(size))
	start := len(b)
	b = b[:start+size]
	if _, err := m.MarshalToSizedBuffer(b[start:]); err != nil {
		return nil, fmt.Errorf("encode as protobuf: %w", err)
	}
	return append(b, EnvelopeTail...), nil
}

// raw returns the message of a stored value. Values this codec wrote are recognised by their head, and cost no parsing.
// Others may be from another API server on the same etcd, whose envelope has its fields in another order. One that
// names another kind is an error: its bytes could decode into nonsense.
func (c *ProtobufCodec) raw(value []byte) ([]byte, error) {
	from, to, err := c.span(value, len(value))
	if err == nil && from == 0 {
		e, err := ParseEnvelope(value)
		if err != nil {
			return nil, err
		}
		if v := string(e.APIVersion); v != c.gvk.GroupVersion().String() && v != c.storedAs.String() ||
			string(e.Kind) != c.gvk.Kind {
			return nil, fmt.Errorf("stored as %s %s, not as %s", e.APIVersion, e.Kind, c.gvk)
		}
		return e.Raw, nil
	}
	return value[from:to], err
}

// span tells where the message of a stored value lies that begins with front and is of a length; from is 0 for one that
// this codec has not written.
func (c *ProtobufCodec) span(front []byte, length int) (from, to int, err error) {
	if !bytes.HasPrefix(front, c.stored) {
		return 0, 0, nil
	}
	size, n := binary.Uvarint(front[len(c.stored):])
	from = len(c.stored) + n
	if n <= 0 || size > uint64(length-from) {
		return 0, 0, fmt.Errorf("%w: cut short", errEnvelope)
	}
	return from, from + int(size), nil
}

// Decode implements Codec.
func (c *ProtobufCodec) Decode(value []byte, revision int64) (runtime.Object, error) {
	raw, err := c.raw(value)
	if err != nil {
		return nil, fmt.Errorf("decode stored %s: %w", c.gvk.Kind, err)
	}
	obj := c.New()
	if err := obj.(Message).Unmarshal(raw); err != nil {
		return nil, fmt.Errorf("decode stored %s: %w", c.gvk.Kind, err)
	}
	if revision != 0 {
		access, err := meta.Accessor(obj)
		if err != nil {
			return nil, fmt.Errorf("decode stored %s: %w", c.gvk.Kind, err)
		}
		setRevision(access, revision)
	}
	if c.decoded != nil {
		c.decoded(obj)
	}
	return obj, nil
}

// Metadata implements Codec.
func (c *ProtobufCodec) Metadata(item *storage.Item) (*metav1.ObjectMeta, error) {
	encoded, err := c.MetadataMessage(item)
	if err != nil {
		return nil, err
	}
	m := &metav1.ObjectMeta{}
	if err := m.Unmarshal(encoded); err != nil {
		return nil, fmt.Errorf("decode metadata of stored %s: %w", c.gvk.Kind, err)
	}
	setRevision(m, item.Revision)
	return m, nil
}

// MetadataMessage implements Codec. The result is a part of the stored value.
func (c *ProtobufCodec) MetadataMessage(item *storage.Item) ([]byte, error) {
	raw, err := c.raw(item.Value())
	if err != nil {
		return nil, fmt.Errorf("decode stored %s: %w", c.gvk.Kind, err)
	}
	encoded, err := metadataOf(raw)
	if err != nil {
		return nil, fmt.Errorf("decode stored %s: %w", c.gvk.Kind, err)
	}
	return encoded, nil
}

// document is the item's JSON: it is made on first demand and shared from then on.
func (c *ProtobufCodec) document(item *storage.Item) (storage.Bytes, error) {
	return item.Encoded(&c.json, storage.WhileAsked, c.encode)
}

// AppendJSON implements Codec.
func (c *ProtobufCodec) AppendJSON(b []byte, item *storage.Item) ([]byte, error) {
	doc, err := c.document(item)
	return doc.Append(b, 0, doc.Len()), err
}

// ElementSize implements Codec.
func (c *ProtobufCodec) ElementSize(item *storage.Item) (int, error) {
	doc, err := c.document(item)
	if c.headed(doc) {
		return doc.Len() - len(c.jsonHead) + 1, err
	}
	return doc.Len(), err
}

// AppendElement implements Codec.
func (c *ProtobufCodec) AppendElement(b []byte, item *storage.Item) ([]byte, error) {
	doc, err := c.document(item)
	if err != nil {
		return b, err
	}
	if c.headed(doc) {
		return doc.Append(append(b, '{'), len(c.jsonHead), doc.Len()), nil
	}
	return doc.Append(b, 0, doc.Len()), nil
}

// headed reports whether doc starts with what elements of lists leave out.
func (c *ProtobufCodec) headed(doc storage.Bytes) bool {
	return len(c.jsonHead) > 0 && bytes.HasPrefix(doc.Front(), c.jsonHead)
}

func (c *ProtobufCodec) makeJSON(item *storage.Item) (storage.Bytes, error) {
	obj, err := Object(c, item)
	if err != nil {
		return storage.Bytes{}, err
	}
	return c.encodeJSON(obj)
}

func (c *ProtobufCodec) encodeJSON(obj runtime.Object) (storage.Bytes, error) {
	access, err := meta.Accessor(obj)
	if err != nil {
		return storage.Bytes{}, fmt.Errorf("encode %s: %w", c.gvk.Kind, err)
	}
	return c.sets.document(obj, access)
}

// Share implements Codec: nobody needs to decode the item for its JSON then. If another reader was faster, the item
// keeps that reader's JSON, and that of obj is dropped.
func (c *ProtobufCodec) Share(item *storage.Item, obj runtime.Object) error {
	_, err := item.Encoded(&c.json, storage.WhileAsked, func(*storage.Item) (storage.Bytes, error) {
		return c.encodeJSON(obj)
	})
	return err
}

// Head implements Messages.
func (c *ProtobufCodec) Head() []byte { return c.head }

// MessageSize implements Messages.
func (c *ProtobufCodec) MessageSize(item *storage.Item) (int, error) {
	value := item.Bytes()
	from, to, err := c.span(value.Front(), value.Len())
	if err == nil && from == 0 {
		var raw []byte
		raw, err = c.raw(value.Flat())
		to = len(raw)
	}
	return to - from + versionSize(item.Revision), err
}

// AppendMessage implements Messages.
func (c *ProtobufCodec) AppendMessage(b []byte, item *storage.Item) ([]byte, error) {
	value := item.Bytes()
	from, to, err := c.span(value.Front(), value.Len())
	switch {
	case err != nil:
		return b, err
	case from > 0:
		return appendVersion(value.Append(b, from, to), item.Revision), nil
	}
	raw, err := c.raw(value.Flat())
	if err != nil {
		return b, err
	}
	return appendVersion(append(b, raw...), item.Revision), nil
}

// versionSize and appendVersion are for metadata{resourceVersion: revision}; nothing for revision 0 (a dry run).
func versionSize(revision int64) int {
	if revision == 0 {
		return 0
	}
	return 4 + decimalLen(revision)
}

func appendVersion(b []byte, revision int64) []byte {
	if revision == 0 {
		return b
	}
	digits := decimalLen(revision)
	b = append(b, tagMetadata, byte(2+digits), tagResourceVersion, byte(digits))
	return strconv.AppendInt(b, revision, 10)
}

func decimalLen(n int64) int {
	l := 1
	for n >= 10 {
		n /= 10
		l++
	}
	return l
}

// Draft implements Codec.
func (c *ProtobufCodec) Draft(obj runtime.Object) (storage.Draft, error) {
	m, ok := obj.(Message)
	if !ok {
		return storage.Draft{}, fmt.Errorf("encode %s: %T has no protobuf form", c.gvk.Kind, obj)
	}
	access, err := meta.Accessor(obj)
	if err != nil {
		return storage.Draft{}, fmt.Errorf("encode %s: %w", c.gvk.Kind, err)
	}
	// The answer is made of obj, and a later read of the bytes, in which an empty list and none are the same. Both must
	// look alike.
	c.empty.clear(reflect.ValueOf(obj))
	// Stored bytes have no version: equal objects must have equal bytes, so that a write without a change is seen.
	if version := access.GetResourceVersion(); version != "" {
		access.SetResourceVersion("")
		defer access.SetResourceVersion(version)
	}
	value, err := Envelop(c.stored, m)
	if err != nil {
		return storage.Draft{}, err
	}
	facts := c.facts.of(obj, access)
	facts.Shared = c.sets.in(value, access)
	return storage.Draft{Value: value, Facts: &facts}, nil
}

// FactsOf implements Codec.
func (c *ProtobufCodec) FactsOf(value []byte) (storage.Facts, error) {
	obj, err := c.Decode(value, 0)
	if err != nil {
		return storage.Facts{}, err
	}
	access, err := meta.Accessor(obj)
	if err != nil {
		return storage.Facts{}, fmt.Errorf("decode stored %s: %w", c.gvk.Kind, err)
	}
	facts := c.facts.of(obj, access)
	if bytes.HasPrefix(value, c.stored) {
		facts.Shared = c.sets.in(value, access)
	}
	return facts, nil
}
