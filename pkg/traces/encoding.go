package traces

import (
	"encoding/binary"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/traces"
)

// format is the first byte of an encoded record. A record of another format is not read: the store then begins empty.
const format = 1

// The bits of the second byte: which parts follow.
const (
	hasObject = 1 << iota
	hasOwner
	hasError
	hasSender
)

// MaxParts bounds the attributes and the links that a decoded record may have. It is far above what the receiver lets
// through: its purpose is that a broken file cannot ask for memory.
const MaxParts = 1024

var errBroken = errors.New("the record is broken or of another version")

// Encode appends the record to b: fixed fields first, then texts with their length. It is several times smaller than
// the Go value, which is what makes a store of bytes hold much.
func (r *Record) Encode(b []byte) []byte {
	b, _ = r.EncodeBoth(b)
	return b
}

// EncodeBoth is Encode, and returns how many bytes of it, to be given to Bare, are also the record without object,
// owner and sender. b must be empty.
func (r *Record) EncodeBoth(b []byte) (whole []byte, bare int) {
	parts := byte(0)
	if r.Object != nil {
		parts |= hasObject
	}
	if r.Owner != nil {
		parts |= hasOwner
	}
	if r.Error != "" {
		parts |= hasError
	}
	if r.Sender != "" {
		parts |= hasSender
	}
	b = append(b, format, parts)
	b = append(b, r.Trace[:]...)
	b = append(b, r.ID[:]...)
	b = append(b, r.Parent[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Start))
	b = binary.AppendUvarint(b, uint64(r.End-r.Start))
	b = appendTexts(b, r.Name, r.Component, r.Instance)
	if r.Error != "" {
		b = appendTexts(b, r.Error)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Attributes)))
	for _, a := range r.Attributes {
		b = appendTexts(b, a.Key, a.Value)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Links)))
	for _, l := range r.Links {
		b = append(b, l.Trace[:]...)
		b = append(b, l.Span[:]...)
		b = appendTexts(b, l.Relation)
	}
	bare = len(b)
	for _, o := range []*traces.Object{r.Object, r.Owner} {
		if o != nil {
			b = appendTexts(b, o.Group, o.Resource, o.Kind, o.Namespace, o.Name, string(o.UID))
		}
	}
	if r.Sender != "" {
		b = appendTexts(b, r.Sender)
	}
	return b, bare
}

// Bare returns a copy of an encoded record without object, owner and sender, of what EncodeBoth returned.
func Bare(whole []byte, bare int) []byte {
	out := append(make([]byte, 0, bare), whole[:bare]...)
	out[1] &^= hasObject | hasOwner | hasSender
	return out
}

func appendTexts(b []byte, texts ...string) []byte {
	for _, s := range texts {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return b
}

// Decode reads what Encode wrote. What it returns shares no memory with b. Any bytes give a record or an error.
func Decode(b []byte) (*Record, error) {
	d := decoder{rest: b}
	head := d.bytes(2)
	if d.broken || head[0] != format {
		return nil, errBroken
	}
	r := &Record{}
	copy(r.Trace[:], d.bytes(16))
	copy(r.ID[:], d.bytes(8))
	copy(r.Parent[:], d.bytes(8))
	if start := d.bytes(8); start != nil {
		r.Start = int64(binary.BigEndian.Uint64(start))
	}
	r.End = r.Start + int64(d.number())
	r.Name, r.Component, r.Instance = d.text(), d.text(), d.text()
	if head[1]&hasError != 0 {
		r.Error = d.text()
	}
	for range d.count() {
		r.Attributes = append(r.Attributes, Attribute{Key: d.text(), Value: d.text()})
	}
	for range d.count() {
		var l Link
		copy(l.Trace[:], d.bytes(16))
		copy(l.Span[:], d.bytes(8))
		l.Relation = d.text()
		r.Links = append(r.Links, l)
	}
	if head[1]&hasObject != 0 {
		r.Object = d.object()
	}
	if head[1]&hasOwner != 0 {
		r.Owner = d.object()
	}
	if head[1]&hasSender != 0 {
		r.Sender = d.text()
	}
	if d.broken || len(d.rest) > 0 || r.End < r.Start {
		return nil, errBroken
	}
	return r, nil
}

// decoder reads from rest. After the first thing that is not there it is broken, and everything else is empty.
type decoder struct {
	rest   []byte
	broken bool
}

func (d *decoder) bytes(n uint64) []byte {
	if d.broken || n > uint64(len(d.rest)) {
		d.broken = true
		return nil
	}
	out := d.rest[:n]
	d.rest = d.rest[n:]
	return out
}

func (d *decoder) number() uint64 {
	v, n := binary.Uvarint(d.rest)
	if d.broken || n <= 0 {
		d.broken = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) text() string { return string(d.bytes(d.number())) }

func (d *decoder) count() int {
	n := d.number()
	if n > MaxParts {
		d.broken = true
		return 0
	}
	return int(n)
}

func (d *decoder) object() *traces.Object {
	return &traces.Object{Group: d.text(), Resource: d.text(), Kind: d.text(), Namespace: d.text(), Name: d.text(),
		UID: types.UID(d.text())}
}
