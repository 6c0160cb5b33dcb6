package storage

import (
	"slices"
	"sync/atomic"
)

// Form is a way in which items are encoded for clients, and the key under which an item keeps that encoding. Forms are
// distinguished by their address, so it must not be a zero-size type, whose addresses may be equal.
type Form struct{ _ byte }

// Keep says how long an item keeps an encoding.
type Keep uint8

const (
	// WhileAsked keeps it until nobody has asked for it for a while: what gets and lists want.
	WhileAsked Keep = iota
	// WhileRecent drops it besides when the item's change is no longer among the latest: what only the watchers of that
	// change want.
	WhileRecent
	// whileHeld keeps it as long as the item is the newest of its key, or among the latest changes: variants.
	whileHeld
)

// Item is one object as storage holds it: immutable, shared by all readers. Its encodings for clients are made on first
// demand and shared from then on.
type Item struct {
	Key      string
	Revision int64
	Facts    Facts

	own []byte // the value without Facts.Shared
	// Readers walk the list without a lock. Writers put a new head before it (compare and swap), or replace it.
	encodings atomic.Pointer[encoding] // a list; its elements do not change
	decoded   atomic.Pointer[any]
	idle      atomic.Uint32 // how many Sweeps have passed since an encoding, or what is decoded, was asked for
	sealed    bool          // own is what the storage keeps, which nobody has opened
}

// encoding is an element of the list of what an item keeps: bytes or a variant.
type encoding struct {
	form    *Form
	bytes   Bytes
	variant *Item
	next    *encoding
	keep    Keep
}

// NewItem returns an item with a value, which the item keeps. facts.Shared that the value does not have are left out.
// All or none count: if one part differs, the item keeps the value whole, which costs memory and is never wrong.
func NewItem(key string, value []byte, revision int64, facts Facts) *Item {
	b := Cut(value, facts.Shared)
	facts.Shared = b.shared
	return &Item{Key: key, Revision: revision, Facts: facts, own: b.own}
}

// Bytes are the encoded object.
func (i *Item) Bytes() Bytes { return Bytes{i.own, i.Facts.Shared} }

// Value returns the encoded object in one piece, which must not be changed.
func (i *Item) Value() []byte { return i.Bytes().Flat() }

// Held is how many bytes of the value nobody else has.
func (i *Item) Held() int { return len(i.own) }

// keepSweeps is how many Sweeps without a reader an encoding outlasts.
const keepSweeps = 5

// Sweep counts that time has passed, and drops the encodings and what is decoded if nobody has asked for any in the
// last five Sweeps. It is called every minute, so that objects nobody reads keep only their Value and their variants.
// Safe beside Encoded and Decoded.
func (i *Item) Sweep() {
	if (i.encodings.Load() != nil || i.decoded.Load() != nil) && i.idle.Add(1) > keepSweeps {
		i.drop(WhileAsked, WhileRecent)
		i.decoded.Store(nil)
	}
}

// asked begins the count of Sweeps again.
func (i *Item) asked() {
	if i.idle.Load() != 0 {
		i.idle.Store(0)
	}
}

// Decoded returns what decode makes of the item, always the same decode, for all who ask to share: nobody may change
// it. Two first callers may both call decode.
func (i *Item) Decoded(decode func(*Item) (any, error)) (any, error) {
	i.asked()
	if d := i.decoded.Load(); d != nil {
		return *d, nil
	}
	d, err := decode(i)
	if err == nil {
		i.decoded.Store(&d)
	}
	return d, err
}

// DropEncodings frees the encodings and variants; they are made again on demand. Safe beside Encoded.
func (i *Item) DropEncodings() { i.encodings.Store(nil) }

// DropRecent frees the encodings that are kept WhileRecent. Safe beside Encoded.
func (i *Item) DropRecent() { i.drop(WhileRecent) }

// drop takes the encodings that are kept in one of these ways off the list. Another goroutine may add one meanwhile;
// then it tries again, so that the addition stays.
func (i *Item) drop(which ...Keep) {
	for {
		list := i.encodings.Load()
		if kept := list.without(which...); kept == list || i.encodings.CompareAndSwap(list, kept) {
			return
		}
	}
}

// without returns the list without what is kept so; the list itself if there is none of it. It copies what precedes a
// dropped element, as readers may be on the old list. Lists are short: one element for each form.
func (e *encoding) without(which ...Keep) *encoding {
	if e == nil {
		return nil
	}
	next := e.next.without(which...)
	switch {
	case slices.Contains(which, e.keep):
		return next
	case next == e.next:
		return e
	}
	return &encoding{form: e.form, bytes: e.bytes, variant: e.variant, next: next, keep: e.keep}
}

func (e *encoding) of(form *Form) *encoding {
	for ; e != nil && e.form != form; e = e.next {
	}
	return e
}

// Encoded returns the item in form, making it with encode if it is not there yet. Two first callers may both call
// encode; all get the same bytes.
func (i *Item) Encoded(form *Form, keep Keep, encode func(*Item) (Bytes, error)) (Bytes, error) {
	i.asked()
	if e := i.encodings.Load().of(form); e != nil {
		return e.bytes, nil
	}
	b, err := encode(i)
	if err != nil {
		return Bytes{}, err
	}
	return i.add(&encoding{form: form, bytes: b, keep: keep}).bytes, nil
}

// add puts made on the list, unless the list has its form, and returns what the list has then. The first one wins:
// callers that made the same encoding at the same time then all hold one copy.
func (i *Item) add(made *encoding) *encoding {
	for {
		made.next = i.encodings.Load()
		if e := made.next.of(made.form); e != nil {
			return e
		}
		if i.encodings.CompareAndSwap(made.next, made) {
			return made
		}
	}
}

// Variant returns the item as another version of its kind, under the key form; nil if nobody has added it.
func (i *Item) Variant(form *Form) *Item {
	if e := i.encodings.Load().of(form); e != nil {
		return e.variant
	}
	return nil
}

// AddVariant keeps v, which was made of the item, and returns the variant that all have. A variant is dear, as a
// webhook makes it. It is kept as long as the item itself, though nobody asks for it: it must be there, too, when the
// webhook is not.
func (i *Item) AddVariant(form *Form, v *Item) *Item {
	return i.add(&encoding{form: form, variant: v, keep: whileHeld}).variant
}
