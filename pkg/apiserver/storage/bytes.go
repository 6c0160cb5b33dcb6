package storage

import "slices"

// Bytes are immutable bytes. Parts of them may lie in memory that several objects share. The zero value is empty. Being
// immutable, they need no lock.
type Bytes struct {
	own    []byte
	shared []Shared
}

// Shared is a part of some bytes that others have, too: its text and where it begins.
type Shared struct {
	At   uint32
	Text string
}

// Cut returns b, without a copy of the shared parts, which are in their order. Where they are not what b has, b is kept
// whole; b must not be changed afterwards. With shared parts the rest is copied to memory of its own size: a slice of b
// would keep all of b alive.
func Cut(b []byte, shared []Shared) Bytes {
	if len(shared) == 0 {
		return Whole(b)
	}
	size, end := len(b), 0
	for _, s := range shared {
		at := int(s.At)
		if at < end || at+len(s.Text) > len(b) || string(b[at:at+len(s.Text)]) != s.Text {
			return Whole(b)
		}
		end = at + len(s.Text)
		size -= len(s.Text)
	}
	own := make([]byte, 0, size)
	end = 0
	for _, s := range shared {
		own = append(own, b[end:s.At]...)
		end = int(s.At) + len(s.Text)
	}
	return Bytes{own: append(own, b[end:]...), shared: shared}
}

// Whole returns b with nothing shared; it must not be changed afterwards.
func Whole(b []byte) Bytes { return Bytes{own: b} }

// Join returns the bytes that consist of own between and around the shared parts.
func Join(own []byte, shared []Shared) Bytes { return Bytes{own, shared} }

// Len is how many bytes they are.
func (b Bytes) Len() int {
	n := len(b.own)
	for i := range b.shared {
		n += len(b.shared[i].Text)
	}
	return n
}

// Flat returns the bytes in one piece, which may be their own memory: it must not be changed. With shared parts each
// call copies all bytes. Answers use Append instead, which copies them to where they are needed anyway.
func (b Bytes) Flat() []byte {
	if len(b.shared) == 0 {
		return b.own
	}
	n := b.Len()
	return b.Append(make([]byte, 0, n), 0, n)
}

// Front returns the bytes before the first shared part.
func (b Bytes) Front() []byte {
	if len(b.shared) == 0 {
		return b.own
	}
	return b.own[:b.shared[0].At]
}

// Behind returns the bytes from a place on, behind all shared parts.
func (b Bytes) Behind(from int) []byte {
	for i := range b.shared {
		from -= len(b.shared[i].Text)
	}
	return b.own[from:]
}

// Append appends the bytes from one place to another, between which all shared parts are. Only whole documents, or a
// message without its envelope, are ever cut out, so it need not look for parts outside.
func (b Bytes) Append(to []byte, from, until int) []byte {
	to = slices.Grow(to, until-from)
	own, at := b.own[from:], from
	for i := range b.shared {
		s := &b.shared[i]
		n := int(s.At) - at
		to = append(append(to, own[:n]...), s.Text...)
		own, at = own[n:], at+n+len(s.Text)
	}
	return append(to, own[:until-at]...)
}
