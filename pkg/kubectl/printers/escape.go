package printers

import (
	"io"
	"strings"
	"sync"

	"bonsai/pkg/termtext"
)

// Escape keeps text of others from steering the terminal that shows it (termtext.Escape).
func Escape(s string) string { return termtext.Escape(s) }

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
