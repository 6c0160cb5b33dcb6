package docbounds

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Messages measures protobuf messages of Go types as k8s.io/api generates them. The zero value is ready; it remembers
// what each type looks like, and may be used by several goroutines.
type Messages struct{ known sync.Map } // reflect.Type to *message

// ErrBroken is the error of an encoding that decoders would take, and take wrongly.
var ErrBroken = errors.New("protobuf map entry is broken")

// message is what matters of a type's encoding, by field number.
type message struct {
	fields map[int]field
	// entry is set for the entry of a map: key (1) and value (2). The generated decoders do not see where an entry
	// ends: a value that claims to be longer is read to the end of the message around it, and what it takes there is
	// read again. So a few kilobytes of entries become gigabytes, and entries must be whole.
	entry bool
}

// field is one field of a message.
type field struct {
	// of is the type of a message; nil for a scalar.
	of *message
	// grows is set if every occurrence takes memory of its own: messages, items of lists, entries of maps. A scalar
	// that comes again only replaces itself.
	grows bool
	// number is set for what is encoded as a varint.
	number bool
	// packs is set for lists of numbers, which may also come as one field with all of them.
	packs bool
}

// Protobuf measures the encoding of a message of into's type, in one pass. Values are messages, list items and map
// entries, and Depth bounds messages in one another. Where the decoder stops because the encoding is broken, this does,
// too.
func (m *Messages) Protobuf(encoded []byte, into any, max Bounds) error {
	t := reflect.TypeOf(into)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := scan{max: max, values: 1}
	s.message(encoded, m.of(t), 1)
	return s.err
}

// of describes a type. Types contain themselves, so that a description is known before it is complete; another
// goroutine makes its own then, which is the same.
func (m *Messages) of(t reflect.Type) *message {
	if d, ok := m.known.Load(t); ok {
		return d.(*message)
	}
	d := describe(t, map[reflect.Type]*message{})
	known, _ := m.known.LoadOrStore(t, d)
	return known.(*message)
}

func describe(t reflect.Type, made map[reflect.Type]*message) *message {
	if d := made[t]; d != nil {
		return d
	}
	d := &message{fields: map[int]field{}}
	made[t] = d
	switch t.Kind() {
	case reflect.Slice: // a type of its own that stands where a message is expected has its items in field 1
		d.fields[1] = itemsOf(t, made)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			// bytes,3,rep,name=containers; not all lists say "rep"
			parts := strings.Split(f.Tag.Get("protobuf"), ",")
			if len(parts) < 2 {
				continue
			}
			if number, err := strconv.Atoi(parts[1]); err == nil {
				d.fields[number] = fieldOf(f.Type, made)
			}
		}
	}
	return d
}

// fieldOf describes a field of Go type t.
func fieldOf(t reflect.Type, made map[reflect.Type]*message) field {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch kind := t.Kind(); {
	case kind == reflect.Map:
		of := &message{entry: true, fields: map[int]field{1: fieldOf(t.Key(), made), 2: fieldOf(t.Elem(), made)}}
		return field{of: of, grows: true}
	case kind == reflect.Slice && t.Elem().Kind() == reflect.Uint8, kind == reflect.String:
		return field{}
	case kind == reflect.Struct, kind == reflect.Slice && reflect.PointerTo(t).Implements(reflect.TypeFor[decoder]()):
		return field{of: describe(t, made), grows: true}
	case kind == reflect.Slice:
		return itemsOf(t, made)
	}
	return field{number: true}
}

// itemsOf describes the items of a list.
func itemsOf(t reflect.Type, made map[reflect.Type]*message) field {
	item := fieldOf(t.Elem(), made)
	item.grows, item.packs = true, item.number
	return item
}

// decoder is a type with an encoding of its own.
type decoder interface{ Unmarshal([]byte) error }

// scan is one measurement.
type scan struct {
	max    Bounds
	values int
	err    error
}

// Wire types of protobuf's encoding.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireStart   = 3
	wireEnd     = 4
	wireFixed32 = 5
)

// message goes through the fields of b. It answers false where the measurement ends: beyond the bounds, or at what is
// broken.
func (s *scan) message(b []byte, m *message, depth int) bool {
	ok := s.fieldsOf(b, m, depth)
	if !ok && m.entry && s.err == nil {
		s.err = ErrBroken
	}
	return ok
}

func (s *scan) fieldsOf(b []byte, m *message, depth int) bool {
	if depth > s.max.Depth {
		s.err = fmt.Errorf("%w of %d", ErrDeep, s.max.Depth)
		return false
	}
	groups := 0 // that are open; decoders pass over them with all that is in them, and look at no field's number there
	for len(b) > 0 {
		tag, n := varint(b)
		number, wire := int32(tag>>3), tag&7
		if n == 0 || number <= 0 && groups == 0 {
			return false
		}
		b = b[n:]
		var value []byte
		switch wire {
		case wireStart:
			groups++
			continue
		case wireEnd:
			if groups == 0 {
				return false
			}
			groups--
			continue
		case wireBytes:
			size, n := varint(b)
			if n == 0 || size > uint64(len(b)-n) {
				return false
			}
			value, b = b[n:n+int(size)], b[n+int(size):]
		default:
			if n = sizeOf(b, wire); n == 0 {
				return false
			}
			b = b[n:]
		}
		f, ok := m.fields[int(number)]
		if ok && m.entry && groups == 0 && f.number != (wire == wireVarint) {
			return false // decoders do not look at the wire type
		}
		if !ok || groups > 0 || !f.grows {
			continue
		}
		s.values++
		if f.packs && wire == wireBytes {
			s.values += packed(value)
		}
		if s.values > s.max.Values {
			s.err = fmt.Errorf("%w: more than %d values", ErrBeyond, s.max.Values)
			return false
		}
		if f.of != nil && wire == wireBytes && !s.message(value, f.of, depth+1) {
			return false
		}
	}
	return groups == 0
}

// packed counts the numbers in a packed list of varints, the only kind that the API has.
func packed(b []byte) int {
	n := 0
	for _, c := range b {
		if c < 0x80 {
			n++
		}
	}
	return n
}

// sizeOf is the length of a number at the start of b; 0 if it is broken.
func sizeOf(b []byte, wire uint64) int {
	n := 0
	switch wire {
	case wireVarint:
		_, n = varint(b)
	case wireFixed64:
		n = 8
	case wireFixed32:
		n = 4
	}
	if n > len(b) {
		return 0
	}
	return n
}

// varint reads a number as lax as the generated decoders, which lose the bits that are too many in its tenth byte, and
// its length in bytes; 0 if it is broken.
func varint(b []byte) (v uint64, n int) {
	for i, c := range b[:min(len(b), binary.MaxVarintLen64)] {
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
