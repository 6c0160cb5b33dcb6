// Package plainjson writes out the control characters that JSON lets through. JSON demands escapes for the first set of
// them only (RFC 8259, section 7); with the rest an object steers the terminal that shows it, and a reader of YAML
// (YAML 1.2.2, section 5.1) refuses the document that it is in.
package plainjson

import (
	"bytes"
	"unicode/utf8"
)

const hex = "0123456789abcdef"

// Escape returns the same JSON document with every character that is not printable in YAML's sense as an escape.
// Outside of strings JSON has none. doc itself is not changed, and is returned where there is nothing to do.
func Escape(doc []byte) []byte {
	next := bytes.IndexFunc(doc, special)
	if next < 0 {
		return doc
	}
	out := make([]byte, 0, len(doc)+64)
	for ; next >= 0; next = bytes.IndexFunc(doc, special) {
		r, n := utf8.DecodeRune(doc[next:])
		out = append(out, doc[:next]...)
		out = append(out, '\\', 'u', hex[r>>12&0xf], hex[r>>8&0xf], hex[r>>4&0xf], hex[r&0xf])
		doc = doc[next+n:]
	}
	return append(out, doc...)
}

// special reports whether JSON lets r through and YAML does not: DEL, C1 of ISO 6429, the byte order mark and the two
// that are no characters. What is no UTF-8 is left to the reader.
func special(r rune) bool {
	return r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff
}
