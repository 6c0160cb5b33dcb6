package storage

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Facts are what selectors read of an object: its labels and the selectable fields of its kind (metadata.name always,
// and metadata.namespace where it has one). They lie in one piece of memory: a server holds them for every object, and
// a map of labels and one of fields would take more than a pod's bytes. They do not change. The zero value has no
// facts.
type Facts struct {
	// packed has keys and values of the labels, sorted, and then the values of the fields in the order of names; each
	// behind its length, a varint.
	packed string
	names  *[]string // of the fields; shared by all objects of a kind
	labels uint32    // how much of packed are labels

	// Splice is for the codec: where in the value the resourceVersion goes; 0: it must look.
	Splice uint32
	// Shared are the parts of the value that other objects have, too: they lie in memory once for all.
	Shared []Shared
}

// FactsFunc reads the facts from an encoded object. It is pure; each resource has its own.
type FactsFunc func(value []byte) (Facts, error)

// NewFacts returns facts with these labels, and of values those that names has; the others are "". names is kept and
// must not change; all objects of a kind share it.
func NewFacts(names *[]string, labels, values map[string]string) Facts {
	size := 0
	for k, v := range labels {
		size += packedLen(k) + packedLen(v)
	}
	f := Facts{names: names, labels: uint32(size)}
	for _, n := range *names {
		size += packedLen(values[n])
	}
	var b strings.Builder
	b.Grow(size)
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		pack(&b, k)
		pack(&b, labels[k])
	}
	for _, n := range *names {
		pack(&b, values[n])
	}
	f.packed = b.String()
	return f
}

func pack(b *strings.Builder, s string) {
	n := uint64(len(s))
	for ; n >= 0x80; n >>= 7 {
		b.WriteByte(byte(n) | 0x80)
	}
	b.WriteByte(byte(n))
	b.WriteString(s)
}

func packedLen(s string) int {
	l := 1 + len(s)
	for n := len(s); n >= 0x80; n >>= 7 {
		l++
	}
	return l
}

// unpack takes the first string off packed.
func unpack(packed string) (s, rest string) {
	n := uint64(packed[0])
	if n < 0x80 {
		return packed[1 : 1+n], packed[1+n:]
	}
	n, l := binary.Uvarint([]byte(packed[:min(len(packed), binary.MaxVarintLen64)]))
	end := uint64(l) + n
	return packed[l:end], packed[end:]
}

// Known reports whether there are any facts.
func (f *Facts) Known() bool { return len(f.packed) > 0 }

// Labels are the labels, for a selector to ask. They belong to f.
func (f *Facts) Labels() labels.Labels { return (*factLabels)(f) }

// Fields are the selectable fields, for a selector to ask. They belong to f.
func (f *Facts) Fields() fields.Fields { return (*factFields)(f) }

// factLabels and factFields are Facts as selectors see them: pointers into an item, so that asking takes no memory.
type (
	factLabels Facts
	factFields Facts
)

// Lookup implements labels.Labels.
func (f *factLabels) Lookup(label string) (value string, exists bool) {
	for rest := f.packed[:f.labels]; rest != ""; {
		var key string
		key, rest = unpack(rest)
		value, rest = unpack(rest)
		if key == label {
			return value, true
		}
	}
	return "", false
}

// Has implements labels.Labels.
func (f *factLabels) Has(label string) bool {
	_, ok := f.Lookup(label)
	return ok
}

// Get implements labels.Labels.
func (f *factLabels) Get(label string) string {
	value, _ := f.Lookup(label)
	return value
}

// Has implements fields.Fields.
func (f *factFields) Has(field string) bool {
	return f.names != nil && slices.Contains(*f.names, field)
}

// Get implements fields.Fields.
func (f *factFields) Get(field string) string {
	if f.names == nil {
		return ""
	}
	rest := f.packed[f.labels:]
	for _, n := range *f.names {
		var value string
		if value, rest = unpack(rest); n == field {
			return value
		}
	}
	return ""
}
