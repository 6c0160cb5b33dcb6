package storage

import (
	"errors"
	"strings"
	"testing"
)

// FuzzContinue: a continue token comes from the client and must never lead out of the resource's keys.
func FuzzContinue(f *testing.F) {
	const prefix = "/registry/pods/ns/"
	f.Add("")
	f.Add(ContinueToken(prefix+"web-1", 7))
	f.Add(ContinueToken("/registry/secrets/ns/x", 7))
	f.Add(ContinueToken(prefix, -1))
	f.Add(token{Version: tokenVersion, Revision: 1, Start: prefix}.String())
	f.Add(token{Version: "v0", Revision: 1, Start: prefix + "x"}.String())
	f.Add("bm90IGpzb24")
	f.Fuzz(func(t *testing.T, s string) {
		start, opts, err := ListOptions{Continue: s, Limit: 5}.From(prefix)
		if err != nil {
			if !errors.Is(err, ErrBadContinue) {
				t.Fatalf("%q: %v is no ErrBadContinue", s, err)
			}
			return
		}
		if !strings.HasPrefix(start, prefix) || opts.Revision < 0 || opts.Limit != 5 {
			t.Fatalf("%q leads to %q, %+v", s, start, opts)
		}
		if s == "" {
			return
		}
		if start == prefix {
			t.Fatalf("%q starts over", s)
		}
		latest, err := ContinueAtLatest(s)
		if err != nil {
			t.Fatalf("%q cannot go on at the newest revision: %v", s, err)
		}
		if again, o, err := (ListOptions{Continue: latest}).From(prefix); err != nil || again != start ||
			o.Match != Latest {
			t.Fatalf("at the newest revision it goes on at %q, %+v, %v, not at %q", again, o, err, start)
		}
	})
}
