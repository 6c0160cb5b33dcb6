package printers

import (
	"bytes"
	"strings"
	"testing"
)

// TestEscape: C0 except for newline and tab, DEL, C1, and what turns the direction of text become visible; everything
// else stays, text from right to left too.
func TestEscape(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext\n":             "plain\ttext\n",
		"\x1b[2J\x1b]0;title\a":     "^[[2J^[]0;title^G",
		"over\rwritten\b\b\x00\x7f": `over\rwritten^H^H^@^?`,
		"\u009b2J\u0080\u009f":      `\u009b2J\u0080\u009f`,
		"ä\u00a0€ ‐ שלום\u200f":     "ä\u00a0€ ‐ שלום\u200f",
		"a\u202egpj.\u2066b\u2069":  `a\u202egpj.\u2066b\u2069`,
		"\xe2\x80x\xe2\u202a":       "\xe2\x80x\xe2" + `\u202a`,
		"\xff\xc2x\x9b":             "\xff\xc2x\x9b",
	} {
		if got := Escape(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if Escape(want) != want {
			t.Errorf("%q is escaped twice", want)
		}
		// The same in writes of one byte each.
		var out bytes.Buffer
		w := Escaping(&out)
		for i := range len(in) {
			if n, err := w.Write([]byte{in[i]}); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if out.String() != want {
			t.Errorf("%q byte by byte: got %q, want %q", in, out.String(), want)
		}
	}
}

// TestAlignEscaped: cells are as wide as they look.
func TestAlignEscaped(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := NewAligner(&out)
	a.Row("NAME", "AGE")
	a.Row("\x1b[2J-wide-name", "1s")
	if err := a.Flush(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	if strings.Index(lines[0], "AGE") != strings.Index(lines[1], "1s") {
		t.Errorf("not aligned:\n%s", out.String())
	}
}
