package registry

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/storage"
)

// Codec turns the objects of one stored kind into bytes and back, and gives an item's encodings to clients. It decodes
// only where it must: a protobuf answer is the stored message with the resourceVersion appended (protobuf merges repeated
// messages), a JSON answer is made once per item and shared.
type Codec struct {
	gvk     schema.GroupVersionKind
	new     func() runtime.Object
	fields  func(runtime.Object) fields.Set
	decoded func(runtime.Object) // completes what was decoded; may be nil

	head     []byte // of the protobuf envelope
	jsonHead []byte // {"kind":"Pod","apiVersion":"v1",
	encode   func(*storage.Item) ([]byte, error)
}

// NewCodec returns the codec of row's stored kind.
func NewCodec(row *resources.Row) *Codec {
	if row.Stored != nil {
		return NewKindCodec(row.Stored.GVK, row.Stored.New, row.Fields)
	}
	c := NewKindCodec(row.GVK, row.New, row.Fields)
	c.decoded = row.Decoded
	return c
}

// NewKindCodec returns the codec of any kind that has a protobuf form; fields may be nil.
func NewKindCodec(gvk schema.GroupVersionKind, newObject func() runtime.Object, fields func(runtime.Object) fields.Set) *Codec {
	c := &Codec{gvk: gvk, new: newObject, fields: fields}
	c.head = EnvelopeHead(c.gvk)
	c.jsonHead = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, c.gvk.Kind, c.gvk.GroupVersion().String())
	c.encode = c.makeJSON
	return c
}

// GVK is the stored kind.
func (c *Codec) GVK() schema.GroupVersionKind { return c.gvk }

// New returns an empty object of the stored kind, with its kind set.
func (c *Codec) New() runtime.Object {
	obj := c.new()
	obj.GetObjectKind().SetGroupVersionKind(c.gvk)
	return obj
}

// Encode returns obj as it is stored: without resourceVersion. obj keeps its own.
func (c *Codec) Encode(obj runtime.Object) ([]byte, error) {
	m, ok := obj.(Message)
	if !ok {
		return nil, fmt.Errorf("encode %s: %T has no protobuf form", c.gvk.Kind, obj)
	}
	access, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", c.gvk.Kind, err)
	}
	if version := access.GetResourceVersion(); version != "" {
		access.SetResourceVersion("")
		defer access.SetResourceVersion(version)
	}
	return Envelop(c.head, m)
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

// Raw returns the message of a stored value. Values this codec wrote are recognised by their head.
func (c *Codec) Raw(value []byte) ([]byte, error) {
	if !bytes.HasPrefix(value, c.head) {
		e, err := ParseEnvelope(value)
		if err != nil {
			return nil, err
		}
		if string(e.APIVersion) != c.gvk.GroupVersion().String() || string(e.Kind) != c.gvk.Kind {
			return nil, fmt.Errorf("stored as %s %s, not as %s", e.APIVersion, e.Kind, c.gvk)
		}
		return e.Raw, nil
	}
	size, n := binary.Uvarint(value[len(c.head):])
	start := len(c.head) + n
	if n <= 0 || size > uint64(len(value)-start) {
		return nil, fmt.Errorf("%w: cut short", errEnvelope)
	}
	return value[start : start+int(size)], nil
}

// Decode returns a new object from a stored value, with the resourceVersion put in unless revision is 0.
func (c *Codec) Decode(value []byte, revision int64) (runtime.Object, error) {
	raw, err := c.Raw(value)
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
		access.SetResourceVersion(strconv.FormatInt(revision, 10))
	}
	if c.decoded != nil {
		c.decoded(obj)
	}
	return obj, nil
}

// Object decodes an item.
func (c *Codec) Object(item *storage.Item) (runtime.Object, error) {
	return c.Decode(item.Value, item.Revision)
}

// Metadata decodes an item's metadata only.
func (c *Codec) Metadata(item *storage.Item) (*metav1.ObjectMeta, error) {
	raw, err := c.Raw(item.Value)
	if err != nil {
		return nil, fmt.Errorf("decode stored %s: %w", c.gvk.Kind, err)
	}
	encoded, err := MetadataOf(raw)
	if err != nil {
		return nil, fmt.Errorf("decode stored %s: %w", c.gvk.Kind, err)
	}
	m := &metav1.ObjectMeta{}
	if err := m.Unmarshal(encoded); err != nil {
		return nil, fmt.Errorf("decode metadata of stored %s: %w", c.gvk.Kind, err)
	}
	m.ResourceVersion = strconv.FormatInt(item.Revision, 10)
	return m, nil
}

// JSON returns the item's shared JSON, without a newline at its end. It starts with JSONHead.
func (c *Codec) JSON(item *storage.Item) ([]byte, error) { return item.Encoded(storage.JSON, c.encode) }

// JSONHead is how every object's JSON of this kind starts: kind and apiVersion. Items of lists leave it out.
func (c *Codec) JSONHead() []byte { return c.jsonHead }

func (c *Codec) makeJSON(item *storage.Item) ([]byte, error) {
	obj, err := c.Object(item)
	if err != nil {
		return nil, err
	}
	return json.Marshal(obj)
}

// Share gives the item the JSON of obj, which must be what the item holds, so that nobody needs to decode it for that.
func (c *Codec) Share(item *storage.Item, obj runtime.Object) error {
	_, err := item.Encoded(storage.JSON, func(*storage.Item) ([]byte, error) { return json.Marshal(obj) })
	return err
}

// Head is the protobuf envelope up to the length of the message.
func (c *Codec) Head() []byte { return c.head }

// MessageSize is the length of what AppendMessage appends.
func (c *Codec) MessageSize(item *storage.Item) (int, error) {
	raw, err := c.Raw(item.Value)
	if err != nil {
		return 0, err
	}
	return len(raw) + versionSize(item.Revision), nil
}

// AppendMessage appends the item's message with its resourceVersion.
func (c *Codec) AppendMessage(b []byte, item *storage.Item) ([]byte, error) {
	raw, err := c.Raw(item.Value)
	if err != nil {
		return b, err
	}
	return appendVersion(append(b, raw...), item.Revision), nil
}

// AppendProtobuf appends the item as a document of its own.
func (c *Codec) AppendProtobuf(b []byte, item *storage.Item) ([]byte, error) {
	size, err := c.MessageSize(item)
	if err != nil {
		return b, err
	}
	b = append(b, c.head...)
	b = binary.AppendUvarint(b, uint64(size))
	if b, err = c.AppendMessage(b, item); err != nil {
		return b, err
	}
	return append(b, EnvelopeTail...), nil
}

// ProtobufSize is the length of what AppendProtobuf appends.
func (c *Codec) ProtobufSize(item *storage.Item) (int, error) {
	size, err := c.MessageSize(item)
	return len(c.head) + UvarintLen(uint64(size)) + size + len(EnvelopeTail), err
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

// Facts reads what selectors need from obj. Fields have metadata.name always and metadata.namespace where there is one.
func (c *Codec) Facts(obj runtime.Object) (storage.Facts, error) {
	access, err := meta.Accessor(obj)
	if err != nil {
		return storage.Facts{}, fmt.Errorf("facts of %s: %w", c.gvk.Kind, err)
	}
	var set fields.Set
	if c.fields != nil {
		set = c.fields(obj)
	}
	if set == nil {
		set = make(fields.Set, 2)
	}
	set["metadata.name"] = access.GetName()
	if ns := access.GetNamespace(); ns != "" {
		set["metadata.namespace"] = ns
	}
	return storage.Facts{Labels: access.GetLabels(), Fields: set}, nil
}

// FactsOf is the storage.FactsFunc of this kind.
func (c *Codec) FactsOf(value []byte) (storage.Facts, error) {
	obj, err := c.Decode(value, 0)
	if err != nil {
		return storage.Facts{}, err
	}
	return c.Facts(obj)
}

// Draft encodes obj for storage.
func (c *Codec) draft(obj runtime.Object) (storage.Draft, error) {
	value, err := c.Encode(obj)
	if err != nil {
		return storage.Draft{}, err
	}
	facts, err := c.Facts(obj)
	if err != nil {
		return storage.Draft{}, err
	}
	return storage.Draft{Value: value, Facts: &facts}, nil
}
