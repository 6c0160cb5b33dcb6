// Package termtext prepares texts for terminals: those of others, which might steer the terminal, and those that have
// to fit into columns.
package termtext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
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

// Line is Escape for a text that has to stay on its line: newlines and tabs become visible too, and bytes that are no
// valid UTF-8, which a terminal may understand in its own way, become U+FFFD.
func Line(s string) string {
	s = Escape(strings.ToValidUTF8(s, "\ufffd"))
	if !strings.ContainsAny(s, "\n\t\u2028\u2029") {
		return s
	}
	return breaks.Replace(s)
}

var breaks = strings.NewReplacer("\n", `\n`, "\t", `\t`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// Columns is how many columns of a terminal s takes: two for wide East Asian characters and emoji, none for marks that
// combine with the character before them.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		n += columns(r)
	}
	return n
}

func columns(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Cut returns s if it fits into n columns, else its beginning and more, which says that something is missing.
func Cut(s string, n int, more string) string {
	if Columns(s) <= n {
		return s
	}
	left := n - Columns(more)
	if left < 0 {
		return ""
	}
	for i, r := range s {
		if left -= columns(r); left < 0 {
			return s[:i] + more
		}
	}
	return s
}

// Pad returns s with spaces up to n columns.
func Pad(s string, n int) string { return s + strings.Repeat(" ", max(n-Columns(s), 0)) }
