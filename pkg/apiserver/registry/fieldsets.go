package registry

import (
	"bytes"
	"encoding/json"
	"hash/maphash"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/storage"
)

// Field sets (metadata.managedFields[].fieldsV1) are more than half of many objects, and the same for all that were
// made from one template. So the items of a kind share their text.
const (
	// A shorter text is not worth to be shared, in bytes; one that is longer is not kept for the case that it comes
	// again.
	minSharedText = 96
	maxSharedText = 8 << 10
	// maxTexts is how many texts of a kind are known, maxSeen how many that came once; then the older ones are
	// forgotten. Who shares a text that is forgotten keeps it, and the next to have it begin again.
	maxTexts = 256
	maxSeen  = 4096
)

// fieldSets are the texts that objects of one kind share. The zero value is ready; it is safe for concurrent use.
type fieldSets struct {
	mu   sync.Mutex
	seed maphash.Seed
	// by hash: a text is kept when it comes the second time, as the sets of status often are an object's own
	seen       map[uint64]struct{}
	young, old map[string]fieldSet
}

// fieldSet is a known text.
type fieldSet struct {
	text string
	// plain: in a document it stands as it is.
	plain bool
}

// of returns the text that equals raw for all to share; ok is false if there is none.
func (f *fieldSets) of(raw []byte) (set fieldSet, ok bool) {
	if len(raw) < minSharedText || len(raw) > maxSharedText {
		return fieldSet{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if set, ok = f.young[string(raw)]; ok {
		return set, true
	}
	if set, ok = f.old[string(raw)]; !ok {
		if !f.again(raw) {
			return fieldSet{}, false
		}
		set = fieldSet{text: string(raw), plain: isPlain(raw)}
	}
	if len(f.young) >= maxTexts/2 || f.young == nil {
		f.young, f.old = map[string]fieldSet{}, f.young
	}
	f.young[set.text] = set
	return set, true
}

// again reports whether raw came before, and remembers it.
func (f *fieldSets) again(raw []byte) bool {
	if len(f.seen) >= maxSeen || f.seen == nil {
		f.seen, f.seed = map[uint64]struct{}{}, maphash.MakeSeed()
	}
	sum := maphash.Bytes(f.seed, raw)
	_, ok := f.seen[sum]
	f.seen[sum] = struct{}{}
	return ok
}

// isPlain reports whether encoding/json writes a raw value as it is: JSON without space, in which nothing is escaped
// for HTML.
func isPlain(raw []byte) bool {
	var compact, escaped bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return false
	}
	json.HTMLEscape(&escaped, compact.Bytes())
	return bytes.Equal(escaped.Bytes(), raw)
}

// in finds the shared texts of an object's field sets in its encoding. Each is looked for behind the one before, as
// they come in the order of the entries.
func (f *fieldSets) in(value []byte, access metav1.Object) []storage.Shared {
	var out []storage.Shared
	at := 0
	for _, e := range access.GetManagedFields() {
		if e.FieldsV1 == nil {
			continue
		}
		set, ok := f.of(e.FieldsV1.GetRawBytes())
		if !ok {
			continue
		}
		i := bytes.Index(value[at:], e.FieldsV1.GetRawBytes())
		if i < 0 {
			break
		}
		out = append(out, storage.Shared{At: uint32(at + i), Text: set.text})
		at += i + len(set.text)
	}
	return out
}

// placeholder stands for a field set while its object is encoded: encoding/json checks and compacts what a Marshaler
// returns byte by byte, which for field sets takes as long as all the rest of an object. No field set has such a key.
const (
	setKey      = "fieldsV1"
	placeholder = `{"` + setKey + `":0}`
	keyed       = `"` + setKey + `":` + placeholder
)

// document returns obj as JSON, with the field sets that are known as shared parts. obj, whose metadata is access, has
// other managedFields during the call.
func (f *fieldSets) document(obj runtime.Object, access metav1.Object) (storage.Bytes, error) {
	entries := access.GetManagedFields()
	bare, texts := f.bare(entries)
	if len(texts) == 0 {
		doc, err := json.Marshal(obj)
		return storage.Whole(doc), err
	}
	access.SetManagedFields(bare)
	doc, err := json.Marshal(obj)
	access.SetManagedFields(entries)
	if err != nil {
		return storage.Bytes{}, err
	}
	return fill(doc, texts), nil
}

// bare returns entries with the placeholder in place of known sets, and the texts of those in their order; none if an
// unknown one could be taken for the placeholder.
func (f *fieldSets) bare(entries []metav1.ManagedFieldsEntry) (bare []metav1.ManagedFieldsEntry, texts []string) {
	none := &metav1.FieldsV1{}
	none.SetRawString(placeholder)
	for i, e := range entries {
		if e.FieldsV1 == nil {
			continue
		}
		raw := e.FieldsV1.GetRawBytes()
		set, ok := f.of(raw)
		if !ok || !set.plain {
			if bytes.Contains(raw, []byte(setKey)) {
				return nil, nil
			}
			continue
		}
		if bare == nil {
			bare = slices.Clone(entries)
		}
		bare[i].FieldsV1 = none
		texts = append(texts, set.text)
	}
	return bare, texts
}

// fill puts the texts in place of a document's first placeholders. They are those of managedFields: of metadata, only
// entries have such a key, and in a string its quotes would be escaped.
func fill(doc []byte, texts []string) storage.Bytes {
	shared := make([]storage.Shared, 0, len(texts))
	own, length := doc[:0], 0
	for _, text := range texts {
		before := doc[:bytes.Index(doc, []byte(keyed))+len(keyed)-len(placeholder)]
		doc = doc[len(before)+len(placeholder):]
		own = append(own, before...)
		shared = append(shared, storage.Shared{At: uint32(length + len(before)), Text: text})
		length += len(before) + len(text)
	}
	return storage.Join(append(own, doc...), shared)
}
