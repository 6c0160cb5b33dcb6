// Package traceparent is the header "traceparent" of W3C's Trace Context (https://www.w3.org/TR/trace-context/), by
// which a client names the trace of its request: "00-<32 hex trace-id>-<16 hex parent-id>-<2 hex flags>". It stands
// apart from package trace, so that kubectl has the header without what exports spans.
package traceparent

import (
	"crypto/rand"
	"encoding/hex"
)

// Header is where HTTP carries the trace context of a request.
const Header = "Traceparent"

// sampled is the flag that asks for the request to be recorded.
const sampled = 1

// length is that of a trace context of version 00.
const length = 55

// New returns a fresh trace context for a request, which asks for it to be recorded.
func New() string {
	var b [24]byte
	rand.Read(b[:])
	return "00-" + hex.EncodeToString(b[:16]) + "-" + hex.EncodeToString(b[16:]) + "-01"
}

// Context is a parsed trace context.
type Context struct {
	TraceID [16]byte
	Parent  [8]byte
	// Sampled tells that the client records its part of the trace.
	Sampled bool
}

// Parse reads a trace context. Later versions begin like version 00, and may have more behind it. ok is false for what
// is none, such as an id of zeros: the header then counts as absent.
func Parse(s string) (c Context, ok bool) {
	if len(s) < length || len(s) > length && (s[:2] == "00" || s[length] != '-') || s[:2] == "ff" ||
		s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return Context{}, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		to   []byte
		from string
	}{{version[:], s[:2]}, {c.TraceID[:], s[3:35]}, {c.Parent[:], s[36:52]}, {flags[:], s[53:55]}} {
		if !lowerHex(part.to, part.from) {
			return Context{}, false
		}
	}
	c.Sampled = flags[0]&sampled != 0
	return c, c.TraceID != [16]byte{} && c.Parent != [8]byte{}
}

// String writes a trace context of version 00.
func (c Context) String() string {
	flags := "-00"
	if c.Sampled {
		flags = "-01"
	}
	return "00-" + hex.EncodeToString(c.TraceID[:]) + "-" + hex.EncodeToString(c.Parent[:]) + flags
}

// lowerHex decodes twice as many digits as to has bytes. Capital letters are refused, as the standard wants.
func lowerHex(to []byte, from string) bool {
	for i := range to {
		hi, lo := digit(from[2*i]), digit(from[2*i+1])
		if hi > 15 || lo > 15 {
			return false
		}
		to[i] = hi<<4 | lo
	}
	return true
}

// digit returns the value of a digit; 16: it is none.
func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 16
}
