package receiver

import (
	"hash/maphash"
	"strings"
	"unicode/utf8"

	"bonsai/pkg/safetext"
)

// The texts that are remembered: how many, and how long one may be. Message and Text of safetext are then the same.
const (
	maxRemembered = 256
	maxShort      = 128
)

// texts makes texts of a message's bytes. It remembers the last ones: spans repeat keys, names and UIDs of the spans
// before them, which then are neither copied nor cleaned again. Its size is always the same.
type texts struct {
	seed maphash.Seed
	last [maxRemembered]remembered
}

// remembered is a text as it came, and clean.
type remembered struct{ raw, clean string }

func newTexts() *texts { return &texts{seed: maphash.MakeSeed()} }

// text returns the bytes as safetext.Text has them.
func (t *texts) text(b []byte) string {
	if len(b) > maxShort {
		return safetext.Text(valid(b))
	}
	return t.short(b)
}

// message returns the bytes as safetext.Message has them.
func (t *texts) message(b []byte) string {
	if len(b) > maxShort {
		return safetext.Message(valid(b))
	}
	return t.short(b)
}

func (t *texts) short(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	r := &t.last[maphash.Bytes(t.seed, b)%maxRemembered]
	if r.raw != string(b) {
		raw := string(b)
		*r = remembered{raw, safetext.Text(strings.ToValidUTF8(raw, ""))}
	}
	return r.clean
}

// valid returns the part of a text that can end up in a record, as far as it is UTF-8. It does not copy more than that:
// a message may be one text.
func valid(b []byte) string {
	const most = 4 * safetext.MaxError // runes of four bytes, some of them left out
	if len(b) > most {
		b = b[:most]
		for len(b) > 0 && !utf8.Valid(b[max(0, len(b)-utf8.UTFMax):]) && !utf8.RuneStart(b[len(b)-1]) {
			b = b[:len(b)-1]
		}
	}
	return strings.ToValidUTF8(string(b), "")
}
