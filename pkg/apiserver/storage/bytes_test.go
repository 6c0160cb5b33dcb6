package storage_test

import (
	"testing"

	"bonsai/pkg/apiserver/storage"
)

// TestCut: bytes with shared parts are the same bytes, and so is each piece that has all of these; what is not shared
// after all is kept.
func TestCut(t *testing.T) {
	t.Parallel()
	const text = "abcdefghij"
	for name, c := range map[string]struct {
		shared []storage.Shared
		front  string
	}{
		"nothing":     {nil, text},
		"in between":  {[]storage.Shared{{At: 2, Text: "cd"}, {At: 6, Text: "ghi"}}, "ab"},
		"all":         {[]storage.Shared{{At: 0, Text: "abcde"}, {At: 5, Text: "fghij"}}, ""},
		"others'":     {[]storage.Shared{{At: 2, Text: "xx"}}, text},
		"beyond":      {[]storage.Shared{{At: 8, Text: "ijk"}}, text},
		"overlapping": {[]storage.Shared{{At: 2, Text: "cd"}, {At: 3, Text: "de"}}, text},
	} {
		b := storage.Cut([]byte(text), c.shared)
		if b.Len() != len(text) || string(b.Flat()) != text || string(b.Front()) != c.front {
			t.Errorf("%s: %d bytes, %q, front %q", name, b.Len(), b.Flat(), b.Front())
		}
		first, last := len(text), 0 // where the shared parts are
		if len(c.front) < len(text) {
			first, last = int(c.shared[0].At), int(c.shared[len(c.shared)-1].At)+len(c.shared[len(c.shared)-1].Text)
		}
		for from := range first + 1 {
			for to := max(from, last); to <= len(text); to++ {
				if got := b.Append([]byte("x"), from, to); string(got) != "x"+text[from:to] {
					t.Errorf("%s: from %d to %d it is %q", name, from, to, got)
				}
			}
		}
	}
}
