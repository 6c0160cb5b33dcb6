package termtext

import "testing"

// TestLine: nothing leaves its line or steers the terminal.
func TestLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"web":             "web",
		"a\nb\tc\r":       `a\nb\tc\r`,
		"\x1b]0;title\a":  "^[]0;title^G",
		"a\u2028b\u2029c": `a\u2028b\u2029c`,
		"\x9b2J\xff":      "\ufffd2J\ufffd",
		"\u202egpj.exe":   `\u202egpj.exe`,
		"\u009b31m":       `\u009b31m`,
	} {
		if got := Line(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestCut: what is too long ends with a mark and fits.
func TestCut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   string
		n    int
		want string
	}{
		{"kubelet", 7, "kubelet"}, {"kubelet", 6, "kubel…"}, {"kubelet", 1, "…"}, {"kubelet", 0, ""}, {"", 0, ""},
		{"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"e\u0301e\u0301", 2, "e\u0301e\u0301"},
		{"🎉🎉", 3, "🎉…"},
	} {
		got := Cut(test.in, test.n, "…")
		if got != test.want || Columns(got) > test.n {
			t.Errorf("%q in %d: %q, want %q", test.in, test.n, got, test.want)
		}
	}
}
