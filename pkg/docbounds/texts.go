package docbounds

import (
	"bytes"
	"fmt"
)

// name goes past an anchor or an alias.
func (s *scanner) name() {
	s.mayBeKey()
	for s.skip(); s.at < len(s.doc) && isName(s.doc[s.at]); {
		s.skip()
	}
}

func isName(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_' || c == '-'
}

// tag goes past a tag, which ends with a blank and nothing else.
func (s *scanner) tag() {
	s.mayBeKey()
	for !s.isBlankAt(s.at) {
		s.skip()
	}
}

// quoted goes past a scalar in quotes.
func (s *scanner) quoted(quote byte) {
	s.mayBeKey()
	for s.skip(); s.at < len(s.doc) && s.doc[s.at] != 0 && !(s.column == 0 && s.isMark()); {
		switch c := s.doc[s.at]; {
		case c == '\'' && quote == c && s.at+1 < len(s.doc) && s.doc[s.at+1] == c:
			s.skip()
		case c == quote:
			s.skip()
			return
		case c == '\\' && quote == '"' && s.breakAt(s.at+1) == 0:
			s.skip()
		}
		s.skip()
	}
}

// plain goes past a scalar without quotes. It goes on in the next line, unless that is indented less.
func (s *scanner) plain() {
	s.mayBeKey()
	for least := s.indent + 1; ; {
		if s.column == 0 && s.isMark() || s.at < len(s.doc) && s.doc[s.at] == '#' {
			return
		}
		for !s.isBlankAt(s.at) {
			c := s.doc[s.at]
			if c == ':' && s.isBlankAt(s.at+1) ||
				s.flow > 0 && (c == ',' || c == '?' || c == '[' || c == ']' || c == '{' || c == '}') {
				return
			}
			s.keyAllowed = false
			s.skip()
		}
		if s.at >= len(s.doc) || s.doc[s.at] == 0 {
			return
		}
		for s.at < len(s.doc) && s.doc[s.at] != 0 && s.isBlankAt(s.at) {
			s.keyAllowed = s.keyAllowed || s.breakAt(s.at) > 0
			s.skip()
		}
		if s.flow == 0 && s.column < least {
			return
		}
	}
}

// block goes past a literal or folded scalar: the lines that are indented as its first, or as its header says.
func (s *scanner) block() {
	s.key.column, s.keyAllowed = -1, true
	s.skip()
	indent := 0
	for s.at < len(s.doc) && (s.doc[s.at] == '+' || s.doc[s.at] == '-' || isDigit(s.doc[s.at])) {
		if c := s.doc[s.at]; isDigit(c) {
			indent = max(s.indent, 0) + int(c-'0')
		}
		s.skip()
	}
	s.toLineEnd()
	s.skip()
	deepest := 0
	for {
		for s.at < len(s.doc) && s.doc[s.at] == ' ' && (indent == 0 || s.column < indent) {
			s.skip()
		}
		deepest = max(deepest, s.column)
		if s.breakAt(s.at) > 0 {
			s.skip()
			continue
		}
		if indent == 0 {
			indent = max(deepest, s.indent+1, 1)
		}
		if s.column != indent || s.at >= len(s.doc) || s.doc[s.at] == 0 {
			return
		}
		s.toLineEnd()
		s.skip()
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// toToken goes past blanks, line breaks and comments.
func (s *scanner) toToken() {
	for s.at < len(s.doc) {
		switch c := s.doc[s.at]; {
		case c == ' ' || c == '\t':
			s.skip()
		case c == '#':
			s.comment()
		case s.breakAt(s.at) > 0:
			s.keyAllowed = s.keyAllowed || s.flow == 0
			s.skip()
		default:
			return
		}
	}
}

// comment goes past a comment, and counts it. The parser keeps each one that is not in line with the one before, and
// goes through all that it has kept wherever a block ends.
func (s *scanner) comment() {
	if s.comments++; s.comments > s.max.Values && s.err == nil {
		s.err = fmt.Errorf("%w: more than %d comments", ErrBeyond, s.max.Values)
	}
	s.toLineEnd()
}

// toLineEnd goes to the next line break, or to the end.
func (s *scanner) toLineEnd() {
	for s.at < len(s.doc) && s.doc[s.at] != 0 && s.breakAt(s.at) == 0 {
		s.skip()
	}
}

// skip goes past one character, or one line break.
func (s *scanner) skip() {
	if n := s.breakAt(s.at); n > 0 {
		s.at += n
		s.index++
		s.line++
		s.column = 0
		return
	}
	if s.at >= len(s.doc) {
		return
	}
	for s.at++; s.at < len(s.doc) && s.doc[s.at]&0xc0 == 0x80; s.at++ {
	}
	s.index++
	s.column++
}

// isMark reports whether "---" or "..." stands here, with nothing after it.
func (s *scanner) isMark() bool {
	rest := s.doc[s.at:]
	return (bytes.HasPrefix(rest, []byte("---")) || bytes.HasPrefix(rest, []byte("..."))) && s.isBlankAt(s.at+3)
}

// isBlankAt reports whether a blank, a line break or the end is at byte i.
func (s *scanner) isBlankAt(i int) bool {
	return i >= len(s.doc) || s.doc[i] == ' ' || s.doc[i] == '\t' || s.doc[i] == 0 || s.breakAt(i) > 0
}

// breakAt returns the length in bytes of the line break at byte i; 0 if there is none.
func (s *scanner) breakAt(i int) int {
	if i >= len(s.doc) {
		return 0
	}
	switch s.doc[i] {
	case '\n':
		return 1
	case '\r':
		if i+1 < len(s.doc) && s.doc[i+1] == '\n' {
			return 2
		}
		return 1
	case 0xc2, 0xe2:
		for _, b := range []string{"\u0085", "\u2028", "\u2029"} {
			if bytes.HasPrefix(s.doc[i:], []byte(b)) {
				return len(b)
			}
		}
	}
	return 0
}
