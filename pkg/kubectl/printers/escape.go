package printers

import (
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Escape keeps text of others from steering the terminal that shows it: control characters become visible ("^[" for
// escape, "\r" for a carriage return, "\u009b" for one of the second set), except for newlines and tabs. Everything
// else stays, what is no valid UTF-8 too. So do characters that change the direction of the text around them
// ("\u202e"), which can make it read as another; text that is written from right to left by itself stays.
func Escape(s string) string {
	if strings.IndexFunc(s, control) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if control(r) {
			b.WriteString(visible(r))
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// control reports whether r is a control character that Escape does not let through: C0 and C1 of ISO 6429, DEL, and
// the explicit directional embeddings, overrides and isolates of Unicode's bidirectional algorithm (UAX #9).
func control(r rune) bool {
	return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || directional(r)
}

func directional(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

func visible(r rune) string {
	const hex = "0123456789abcdef"
	switch {
	case r == '\r':
		return `\r`
	case r == 0x7f:
		return "^?"
	case r < 0x20:
		return "^" + string(r+'@')
	}
	return `\u` + string([]byte{hex[r>>12&0xf], hex[r>>8&0xf], hex[r>>4&0xf], hex[r&0xf]})
}

// escaper is a writer that escapes. All human-readable output of kubectl goes through one.
type escaper struct {
	mu sync.Mutex // port-forward writes from several goroutines
	w  io.Writer
	// begun is how the last write ended, if that may be the beginning of a control character; it is written with the
	// next one.
	begun string
}

// beginnings are how the control characters of more than one byte begin in UTF-8.
var beginnings = []string{"\xe2\x80", "\xe2\x81", "\xe2", "\xc2"}

// Escaping returns a writer that escapes what it passes on to w.
func Escaping(w io.Writer) io.Writer { return &escaper{w: w} }

// Raw returns the writer below an escaping one, or w itself: for data rather than words about it, which must arrive as
// it is.
func Raw(w io.Writer) io.Writer {
	if e, ok := w.(*escaper); ok {
		return e.w
	}
	return w
}

// Write passes p on, escaped. It reports all of p as written, unless there is an error.
func (e *escaper) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	text := e.begun + string(p)
	e.begun = ""
	for _, begin := range beginnings {
		if strings.HasSuffix(text, begin) {
			text, e.begun = strings.TrimSuffix(text, begin), begin
			break
		}
	}
	if text == "" {
		return len(p), nil
	}
	if _, err := io.WriteString(e.w, Escape(text)); err != nil {
		return 0, err
	}
	return len(p), nil
}
