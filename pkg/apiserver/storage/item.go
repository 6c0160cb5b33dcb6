package storage

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Facts are what selectors read of an object: its labels and the selectable fields of its kind (always metadata.name,
// and metadata.namespace where it has one).
type Facts struct {
	Labels labels.Set
	Fields fields.Set
	// Splice is for the codec: where in the value the resourceVersion goes; 0: it must look.
	Splice int32
}

// FactsFunc reads the facts from an encoded object. It is pure; each resource has its own.
type FactsFunc func(value []byte) (Facts, error)

// Encoding names a form in which an item is sent to clients.
type Encoding int

// The encodings an Item keeps once made. Each has the item's resourceVersion in it.
const (
	JSON Encoding = iota
	Protobuf
	encodings
)

// Item is one object as storage holds it: immutable, shared by all readers. Its encodings for clients are made on first
// demand and shared from then on.
type Item struct {
	Key      string
	Value    []byte
	Revision int64
	Facts    Facts

	encoded [encodings]atomic.Pointer[[]byte]
	used    atomic.Bool // Encoded was called since the last Sweep
}

// Sweep drops the encodings if no one asked for one since the Sweep before. It is called every few minutes so that
// objects nobody reads keep only their Value. Safe beside Encoded.
func (i *Item) Sweep() {
	if !i.used.Swap(false) {
		i.DropEncodings()
	}
}

// DropEncodings frees the encodings; they are made again on demand. Safe beside Encoded.
func (i *Item) DropEncodings() {
	for e := range i.encoded {
		if i.encoded[e].Load() != nil {
			i.encoded[e].Store(nil)
		}
	}
}

// Encoded returns the item in encoding e, making it with encode if it is not there yet. Two first callers may both call
// encode; all get the same slice, which is read-only.
func (i *Item) Encoded(e Encoding, encode func(*Item) ([]byte, error)) ([]byte, error) {
	if !i.used.Load() {
		i.used.Store(true)
	}
	if p := i.encoded[e].Load(); p != nil {
		return *p, nil
	}
	b, err := encode(i)
	if err != nil {
		return nil, err
	}
	if !i.encoded[e].CompareAndSwap(nil, &b) {
		if p := i.encoded[e].Load(); p != nil {
			b = *p
		}
	}
	return b, nil
}
