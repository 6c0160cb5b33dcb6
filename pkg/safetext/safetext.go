// Package safetext makes texts safe for errors, logs and answers: those that other processes choose, which may be
// endless or steer a terminal, and URLs, which may hold passwords.
package safetext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// MaxText bounds Text, in bytes.
	MaxText = 256
	// MaxError bounds Message and the text of Error and Status, in bytes. It is larger than MaxText: these hold
	// words of this process, such as a URL, beside those of the other.
	MaxError = 1024
	// more ends a text that was cut.
	more = "…"
)

// Text returns the beginning of a text of another process on one line, without control characters.
func Text(text string) string { return bounded(text, MaxText) }

// Message is Text for a message that users are to read in full, of up to MaxError bytes.
func Message(text string) string { return bounded(text, MaxError) }

// Line is Text of up to a bound of the caller's, in bytes.
func Line(text string, most int) string { return bounded(text, most) }

// bounded returns at most that many bytes of text, and a mark if some are missing. It reads no more of text than it
// needs: a caller may hold megabytes.
func bounded(text string, most int) string {
	if len(text) <= most && plain(text) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			r = ' '
		case !unicode.IsPrint(r) || r == utf8.RuneError: // such as an escape sequence or a mark of writing direction
			continue
		}
		if out.Len()+utf8.RuneLen(r) > most {
			return out.String() + more
		}
		out.WriteRune(r)
	}
	return out.String()
}

// plain reports whether a text has nothing but the printable characters of ASCII, as most have.
func plain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// Error returns err with its text bounded and cleaned, where another process may have written a part of that. errors.Is
// and errors.As look through it.
func Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	clean := bounded(text, MaxError)
	if clean == text {
		return err
	}
	return &cleaned{text: clean, err: err}
}

// cleaned is an error with another text.
type cleaned struct {
	text string
	err  error
}

// Error implements error.
func (c *cleaned) Error() string { return c.text }

// Unwrap returns the error with its own text.
func (c *cleaned) Unwrap() error { return c.err }

// Status returns Error of what a gRPC call returned. The peer also chooses its code: one that gRPC does not define
// becomes Unknown, or each would be a new label of a metric.
func Status(err error) error {
	peer, ok := err.(interface{ GRPCStatus() *status.Status }) //nolint:errorlint // a wrapped one has words of ours
	if !ok {
		return Error(err)
	}
	s := peer.GRPCStatus()
	text := bounded(s.Message(), MaxError)
	if text != s.Message() || Code(s.Code()) != s.Code() || len(s.Details()) > 0 {
		return status.Error(Code(s.Code()), text)
	}
	return err
}

// Code returns a code that gRPC defines: Unknown for others.
func Code(c codes.Code) codes.Code {
	if c > codes.Unauthenticated { // the last one
		return codes.Unknown
	}
	return c
}

// CodeOf returns the code of a gRPC error, which gRPC defines. It reports whether there is one.
func CodeOf(err error) (codes.Code, bool) {
	s, ok := status.FromError(err)
	return Code(s.Code()), ok
}
