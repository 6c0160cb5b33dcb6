package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sigsjson "sigs.k8s.io/json"

	"bonsai/pkg/apiserver/storage"
)

// JSONCodec is the Codec of unstructured objects: custom resources. They are stored as Kubernetes stores them: one line
// of JSON in the storage version, its keys sorted, a newline at its end. A JSON answer is the stored line with the
// resourceVersion spliced into its metadata, at the place that the item's facts name; there is no other text to be made
// or kept. A value that cannot be spliced (one in another version of the kind, or one that decoded completes) is
// decoded, and the JSON of that is kept with the item.
type JSONCodec struct {
	gvk   schema.GroupVersionKind
	new   func() runtime.Object
	facts factReader
	// makes an object of another version one of gvk; nil: they differ by name only
	upgrade func(runtime.Object) (runtime.Object, error)
	decoded func(runtime.Object) // completes what was decoded; may be nil

	sets   fieldSets
	head   []byte       // how the values start that this codec writes
	json   storage.Form // of values that cannot be spliced
	encode func(*storage.Item) (storage.Bytes, error)
}

var _ Codec = (*JSONCodec)(nil)

// NewJSONCodec returns the codec of a kind whose objects are runtime.Unstructured; fields and decoded may be nil.
// decoded completes an object that was read from storage (defaults of a schema that has changed since): it must be
// idempotent.
func NewJSONCodec(gvk schema.GroupVersionKind, newObject func() runtime.Object, fields func(runtime.Object) fields.Set,
	decoded func(runtime.Object)) *JSONCodec {
	c := &JSONCodec{gvk: gvk, new: newObject, facts: factReader{fields: fields}, decoded: decoded}
	c.head = fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,`, gvk.GroupVersion().String(), gvk.Kind)
	c.encode = c.makeJSON
	return c
}

// GVK implements Codec.
func (c *JSONCodec) GVK() schema.GroupVersionKind { return c.gvk }

// New implements Codec.
func (c *JSONCodec) New() runtime.Object {
	obj := c.new()
	obj.GetObjectKind().SetGroupVersionKind(c.gvk)
	return obj
}

// MediaTypes implements Codec.
func (c *JSONCodec) MediaTypes() []string {
	return []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML}
}

// Messages implements Codec: there are none.
func (c *JSONCodec) Messages() Messages { return nil }

// Draft implements Codec.
func (c *JSONCodec) Draft(obj runtime.Object) (storage.Draft, error) {
	u, ok := obj.(runtime.Unstructured)
	if !ok {
		return storage.Draft{}, fmt.Errorf("encode %s: %T is not unstructured", c.gvk.Kind, obj)
	}
	access, err := meta.Accessor(obj)
	if err != nil {
		return storage.Draft{}, fmt.Errorf("encode %s: %w", c.gvk.Kind, err)
	}
	if version := access.GetResourceVersion(); version != "" {
		access.SetResourceVersion("")
		defer access.SetResourceVersion(version)
	}
	value, err := json.Marshal(u.UnstructuredContent())
	if err != nil {
		return storage.Draft{}, fmt.Errorf("encode %s: %w", c.gvk.Kind, err)
	}
	value = append(value, '\n')
	if c.decoded != nil {
		// The stored bytes stay without what decoded adds, such as a default that may change. But selectors and answers
		// must see the completed object, so such a value is not spliced.
		read := obj.DeepCopyObject()
		c.decoded(read)
		if !reflect.DeepEqual(read, obj) { // it is read as something else than it is stored as
			if access, err = meta.Accessor(read); err != nil {
				return storage.Draft{}, fmt.Errorf("encode %s: %w", c.gvk.Kind, err)
			}
			facts := c.facts.of(read, access)
			return storage.Draft{Value: value, Facts: &facts}, nil
		}
	}
	facts := c.facts.of(obj, access)
	facts.Splice, facts.Shared = c.splice(value)
	return storage.Draft{Value: value, Facts: &facts}, nil
}

// splice is Facts.Splice of a well-formed value, where its metadata takes the resourceVersion (0 if it does not), and
// the field sets before that place that other objects have, too.
func (c *JSONCodec) splice(value []byte) (uint32, []storage.Shared) {
	// Only the form that this codec writes is spliced. Other JSON (spaces, another order, another version) is decoded
	// instead. AppendElement relies on the newline, and Facts.Splice has 32 bits.
	if !bytes.HasPrefix(value, c.head) || !bytes.HasSuffix(value, []byte("}\n")) || len(value) > math.MaxInt32 {
		return 0, nil
	}
	m, err := scanMetadata(value)
	if err != nil || m.splice == 0 {
		return 0, nil
	}
	var shared []storage.Shared
	eachFieldSet(value, m.start, func(start, end int) {
		if end > m.splice {
			return
		}
		if set, ok := c.sets.of(value[start:end]); ok {
			shared = append(shared, storage.Shared{At: uint32(start), Text: set.text})
		}
	})
	return uint32(m.splice), shared
}

// Decode implements Codec.
func (c *JSONCodec) Decode(value []byte, revision int64) (runtime.Object, error) {
	obj, err := c.decode(value)
	if err != nil {
		return nil, fmt.Errorf("decode stored %s: %w", c.gvk.Kind, err)
	}
	access, err := meta.Accessor(obj)
	if err != nil {
		return nil, fmt.Errorf("decode stored %s: %w", c.gvk.Kind, err)
	}
	setRevision(access, revision)
	return obj, nil
}

// decode reads a value of any version of the kind as an object of the storage version. It is completed in the version
// that it is stored in.
func (c *JSONCodec) decode(value []byte) (runtime.Object, error) {
	u, err := c.read(value)
	if err != nil {
		return nil, err
	}
	if c.decoded != nil {
		c.decoded(u)
	}
	if c.upgrades(u) {
		return c.upgrade(u)
	}
	u.GetObjectKind().SetGroupVersionKind(c.gvk)
	return u, nil
}

// upgrades reports whether an object is of a version that takes more than its name to be of the storage version.
func (c *JSONCodec) upgrades(obj runtime.Object) bool {
	return c.upgrade != nil && obj.GetObjectKind().GroupVersionKind() != c.gvk
}

// read reads a value as it is.
func (c *JSONCodec) read(value []byte) (runtime.Object, error) {
	content := map[string]any{}
	if err := sigsjson.UnmarshalCaseSensitivePreserveInts(value, &content); err != nil {
		return nil, err
	}
	version, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	if gv, err := schema.ParseGroupVersion(version); err != nil || gv.Group != c.gvk.Group || kind != c.gvk.Kind {
		return nil, fmt.Errorf("stored as %q %q, not as %s", version, kind, c.gvk)
	}
	if _, ok := content["metadata"].(map[string]any); !ok {
		return nil, errors.New("it has no metadata")
	}
	u, ok := c.New().(runtime.Unstructured)
	if !ok {
		return nil, fmt.Errorf("%T is not unstructured", c.New())
	}
	u.SetUnstructuredContent(content)
	return u, nil
}

// FactsOf implements Codec. It decodes the whole object only where more than its metadata is asked for. What was stored
// in another version is selected by what it has there until it is written again: to upgrade it may take a webhook, and
// all caches wait for the facts of a change.
func (c *JSONCodec) FactsOf(value []byte) (storage.Facts, error) {
	if c.facts.fields == nil && c.decoded == nil && json.Valid(value) {
		if splice, shared := c.splice(value); splice > 0 {
			m, err := c.metadata(value)
			if err != nil {
				return storage.Facts{}, err
			}
			facts := c.facts.of(nil, m)
			facts.Splice, facts.Shared = splice, shared
			return facts, nil
		}
	}
	obj, err := c.read(value)
	if err != nil {
		return storage.Facts{}, err
	}
	if c.upgrades(obj) {
		access, err := meta.Accessor(obj)
		if err != nil {
			return storage.Facts{}, err
		}
		return c.facts.of(obj, access), nil
	}
	obj.GetObjectKind().SetGroupVersionKind(c.gvk)
	// Drafting the object again shows whether the value is as this codec would write it. Only then do places in the
	// draft hold for the value.
	d, err := c.Draft(obj)
	if err != nil {
		return storage.Facts{}, err
	}
	if !bytes.Equal(d.Value, value) { // of another version, or not as this codec writes
		d.Facts.Splice, d.Facts.Shared = 0, nil
	}
	return *d.Facts, nil
}

// Metadata implements Codec.
func (c *JSONCodec) Metadata(item *storage.Item) (*metav1.ObjectMeta, error) {
	m, err := c.metadata(item.Value())
	if err != nil {
		return nil, err
	}
	setRevision(m, item.Revision)
	return m, nil
}

// MetadataMessage implements Codec.
func (c *JSONCodec) MetadataMessage(item *storage.Item) ([]byte, error) {
	m, err := c.metadata(item.Value())
	if err != nil {
		return nil, err
	}
	m.ResourceVersion = ""
	b, err := m.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode metadata of %s: %w", c.gvk.Kind, err)
	}
	return b, nil
}

// metadata decodes the metadata of a value and nothing else: custom resources may be large, and most readers of
// metadata need no spec.
func (c *JSONCodec) metadata(value []byte) (*metav1.ObjectMeta, error) {
	span, err := scanMetadata(value)
	m := &metav1.ObjectMeta{}
	if err == nil {
		err = sigsjson.UnmarshalCaseSensitivePreserveInts(value[span.start:span.end], m)
	}
	if err != nil {
		return nil, fmt.Errorf("decode metadata of stored %s: %w", c.gvk.Kind, err)
	}
	return m, nil
}

// AppendJSON implements Codec.
func (c *JSONCodec) AppendJSON(b []byte, item *storage.Item) ([]byte, error) {
	return c.AppendElement(b, item)
}

func (c *JSONCodec) makeJSON(item *storage.Item) (storage.Bytes, error) {
	obj, err := Object(c, item)
	if err != nil {
		return storage.Bytes{}, err
	}
	doc, err := json.Marshal(obj.(runtime.Unstructured).UnstructuredContent())
	return storage.Whole(doc), err
}

// Share implements Codec: the item's bytes are enough.
func (c *JSONCodec) Share(*storage.Item, runtime.Object) error { return nil }

// What a resourceVersion takes between others, the digits apart.
const (
	versionKey   = `"resourceVersion":"`
	versionBytes = len(versionKey) + len(`",`)
)

// spliceOf is where the item's bytes take the resourceVersion; 0: they must be decoded. Those that an earlier codec
// wrote may be of another version, and have its facts: the definition changed since.
func (c *JSONCodec) spliceOf(item *storage.Item) int {
	if !bytes.HasPrefix(item.Bytes().Front(), c.head) {
		return 0
	}
	return int(item.Facts.Splice)
}

// ElementSize implements Codec.
func (c *JSONCodec) ElementSize(item *storage.Item) (int, error) {
	if c.spliceOf(item) == 0 {
		doc, err := item.Encoded(&c.json, storage.WhileAsked, c.encode)
		return doc.Len(), err
	}
	size := item.Bytes().Len() - 1 // without the newline
	if item.Revision != 0 {
		size += versionBytes + decimalLen(item.Revision)
	}
	return size, nil
}

// AppendElement implements Codec. Elements keep kind and apiVersion, as in lists of custom resources everywhere.
func (c *JSONCodec) AppendElement(b []byte, item *storage.Item) ([]byte, error) {
	at := c.spliceOf(item)
	if at == 0 {
		doc, err := item.Encoded(&c.json, storage.WhileAsked, c.encode)
		return doc.Append(b, 0, doc.Len()), err
	}
	line := item.Bytes()
	b = slices.Grow(b, line.Len()+versionBytes+decimalLen(item.Revision))
	b = line.Append(b, 0, at)
	rest := line.Behind(at)
	rest = rest[:len(rest)-1]
	if item.Revision == 0 {
		return append(b, rest...), nil
	}
	if rest[0] != '"' { // behind the last key
		b = append(b, ',')
	}
	b = strconv.AppendInt(append(b, versionKey...), item.Revision, 10)
	b = append(b, '"')
	if rest[0] == '"' { // before the next key
		b = append(b, ',')
	}
	return append(b, rest...), nil
}
