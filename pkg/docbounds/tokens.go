package docbounds

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// tokensPerValue is how many tokens come with a value at most: an entry's "-" or ",", a "?" or ":", an anchor, a tag,
// and its text or bracket.
const tokensPerValue = 5

// tokens goes through the first document of a YAML stream as a parser's scanner does, and stops beyond the bounds. It
// comes before the parser, which keeps hundreds of bytes a value, and takes longer for each the deeper brackets are.
// Values that are not written ("a:", "-") count as their tokens alone, and what aliases stand for not at all, so that
// this is no more than a parser finds.
//
// Where the scanner of go.yaml.in/yaml/v3 is stricter or laxer than YAML's specification, this is the same: text that
// only one of them takes for a quoted scalar or a comment could hide the rest of the document. What that refuses may be
// counted in any way.
func tokens(doc []byte, max Bounds) error {
	s := newScanner(inUTF8(doc), max)
	if bytes.Contains(s.doc, []byte(byteOrder)) {
		s.indicators()
		return s.err
	}
	for s.err == nil && s.next() {
	}
	return s.err
}

// byteOrder is the byte order mark. Within a document, the parser takes it for text or passes over what follows it, as
// its buffers happen to lie.
const byteOrder = "\ufeff"

// inUTF8 returns a document that may be in UTF-16, without its byte order mark.
func inUTF8(doc []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(doc, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(doc, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return bytes.TrimPrefix(doc, []byte(byteOrder))
	}
	out := make([]byte, 0, len(doc))
	for b := doc[2:]; len(b) >= 2; b = b[2:] {
		r := rune(order.Uint16(b))
		if utf16.IsSurrogate(r) && len(b) >= 4 {
			r = utf16.DecodeRune(r, rune(order.Uint16(b[2:])))
			b = b[2:]
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

// scanner is a place in a document.
type scanner struct {
	doc []byte
	max Bounds
	err error

	at                  int // in bytes
	index, line, column int // in characters, from 0
	values, tokens      int
	comments            int
	started             bool // the document: a second one is not looked at

	flow    int   // brackets that are open
	indent  int   // column of the innermost block; -1 outside of all
	indents []int // those of the blocks around it

	// keyAllowed says that a key without "?" may begin here. key is where the last such began; no key began if its
	// column is -1. Inside of brackets no indentation depends on either.
	keyAllowed bool
	key        struct{ index, line, column int }
}

func newScanner(doc []byte, max Bounds) *scanner {
	s := &scanner{doc: doc, max: max, indent: -1, keyAllowed: true}
	s.key.column = -1
	return s
}

// indicators counts all that could be a token, in texts and comments as well.
func (s *scanner) indicators() {
	for _, c := range s.doc {
		if bytes.IndexByte([]byte("[]{},-?:*&!|>\"'\n\r"), c) >= 0 {
			s.token()
		}
	}
}

// next goes past one token. It answers false at the end of the document.
func (s *scanner) next() bool {
	s.toToken()
	if s.at >= len(s.doc) || s.doc[s.at] == 0 {
		return false
	}
	s.unroll(s.column)
	c := s.doc[s.at]
	if s.column == 0 && (c == '%' || s.isMark()) {
		return s.directive(c)
	}
	s.started = true
	apart := s.isBlankAt(s.at + 1)
	switch {
	case c == '[' || c == '{':
		s.mayBeKey()
		s.flow++
		s.value(s.depth())
		s.skip()
	case c == ']' || c == '}':
		s.flow, s.keyAllowed = max(s.flow-1, 0), false
		s.skip()
	case c == ',':
		s.indicator(true)
	case c == '-' && apart:
		s.roll(s.column)
		s.indicator(true)
	case c == '?' && (apart || s.flow > 0):
		s.roll(s.column)
		s.indicator(s.flow == 0)
	case c == ':' && (apart || s.flow > 0):
		s.afterKey()
	case c == '*':
		s.value(0)
		s.name()
	case c == '&':
		s.name()
	case c == '!':
		s.tag()
	case (c == '|' || c == '>') && s.flow == 0:
		s.value(0)
		s.block()
	case c == '"' || c == '\'':
		s.value(0)
		s.quoted(c)
	case c == '|' || c == '>' || c == '%' || c == '@' || c == '`':
		s.skip() // nothing begins so
	default:
		s.value(0)
		s.plain()
	}
	s.token()
	return true
}

// directive goes past what may stand before the document, and answers false where the next one begins.
func (s *scanner) directive(c byte) bool {
	if s.started || c == '.' {
		return false
	}
	s.started, s.keyAllowed = c == '-', false
	if c == '-' {
		s.skip()
		s.skip()
		s.skip()
		return true
	}
	s.toLineEnd()
	return true
}

// token counts one token.
func (s *scanner) token() {
	if s.tokens++; s.tokens/tokensPerValue > s.max.Values && s.err == nil {
		s.err = fmt.Errorf("%w: more than %d values", ErrBeyond, s.max.Values)
	}
}

// value counts one value, that lies in depth objects and lists together with itself; 0 for a scalar.
func (s *scanner) value(depth int) {
	if s.values++; s.values > s.max.Values {
		s.err = fmt.Errorf("%w: more than %d values", ErrBeyond, s.max.Values)
	}
	if depth > s.max.Depth {
		s.err = fmt.Errorf("%w of %d", ErrDeep, s.max.Depth)
	}
}

func (s *scanner) depth() int { return len(s.indents) + s.flow }

// roll begins a block at a column, if it is inside of the present one.
func (s *scanner) roll(column int) {
	if s.flow > 0 || s.indent >= column {
		return
	}
	s.indents = append(s.indents, s.indent)
	s.indent = column
	s.value(s.depth())
}

// unroll ends the blocks that what stands at a column is not in.
func (s *scanner) unroll(column int) {
	for s.flow == 0 && s.indent > column {
		s.indent = s.indents[len(s.indents)-1]
		s.indents = s.indents[:len(s.indents)-1]
	}
}

// indicator goes past one character, behind which a key may begin or not.
func (s *scanner) indicator(keyAllowed bool) {
	if s.flow == 0 {
		s.key.column = -1
	}
	s.keyAllowed = keyAllowed
	s.skip()
}

// mayBeKey notes that a key may begin here.
func (s *scanner) mayBeKey() {
	if s.flow == 0 && s.keyAllowed {
		s.key.index, s.key.line, s.key.column = s.index, s.line, s.column
	}
	s.keyAllowed = false
}

// longestKey bounds a key without "?", in characters.
const longestKey = 1024

// afterKey goes past a ":". If a key stands before it, on its line, the block begins where that does.
func (s *scanner) afterKey() {
	if s.flow > 0 {
		s.indicator(false)
		return
	}
	found := s.key.column >= 0 && s.key.line == s.line && s.index <= s.key.index+longestKey
	if found {
		s.roll(s.key.column)
	} else {
		s.roll(s.column)
	}
	s.indicator(!found)
}
