package storage_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"bonsai/pkg/apiserver/storage"
)

func TestFactsTable(t *testing.T) {
	t.Parallel()
	named := func(n string) storage.FactsFunc {
		return func([]byte) (storage.Facts, error) {
			return storage.NewFacts(&[]string{}, map[string]string{"by": n}, nil), nil
		}
	}
	table := &storage.FactsTable{}
	for _, p := range []string{"/registry/pods/", "/registry/services/specs/", "/registry/services/endpoints/",
		"/registry/example.com/widgets/"} {
		table.Register(p, named(p))
	}
	for key, want := range map[string]string{
		"/registry/pods/":                  "/registry/pods/",
		"/registry/pods/default/a":         "/registry/pods/",
		"/registry/services/specs/ns/a":    "/registry/services/specs/",
		"/registry/services/endpoints/n/a": "/registry/services/endpoints/",
		"/registry/example.com/widgets/w":  "/registry/example.com/widgets/",
		"/registry/podsother/a":            "",
		"/registry/":                       "",
		"plain":                            "",
	} {
		prefix, f := table.Resource(key)
		if prefix != want || (f != nil) != (want != "") {
			t.Errorf("%s belongs to %q, want %q", key, prefix, want)
		}
		facts, err := table.Of(key, storage.Draft{})
		if err != nil || facts.Labels().Get("by") != want {
			t.Errorf("facts of %s: %+v, %v", key, facts, err)
		}
	}
	table.Unregister("/registry/pods/")
	if prefix, _ := table.Resource("/registry/pods/default/a"); prefix != "" {
		t.Errorf("an unregistered resource is still known as %s", prefix)
	}
	if prefix, _ := (*storage.FactsTable)(nil).Resource("/registry/pods/"); prefix != "" {
		t.Error("a nil table knows something")
	}
	bad := errors.New("bad")
	table.Register("/registry/bad/", func([]byte) (storage.Facts, error) { return storage.Facts{}, bad })
	if _, err := table.Of("/registry/bad/x", storage.Draft{}); !errors.Is(err, bad) {
		t.Errorf("error %v", err)
	}
	if _, err := table.Of("/registry/bad/x", storage.Draft{Facts: &storage.Facts{}}); err != nil {
		t.Errorf("the writer's facts were read again: %v", err)
	}
}

func TestSeen(t *testing.T) {
	t.Parallel()
	yes, no := &storage.Item{Key: "yes"}, &storage.Item{Key: "no"}
	filter := func(i *storage.Item) bool { return i == yes }
	for _, c := range []struct {
		prev, cur *storage.Item
		want      storage.EventType
	}{
		{nil, yes, storage.Added}, {nil, no, ""}, {no, yes, storage.Added}, {yes, yes, storage.Modified},
		{yes, no, storage.Deleted}, {yes, nil, storage.Deleted}, {no, nil, ""}, {no, no, ""},
	} {
		if got := storage.Seen(filter, c.prev, c.cur); got != c.want {
			t.Errorf("from %v to %v is seen as %q, want %q", c.prev, c.cur, got, c.want)
		}
	}
}

func TestContinueTokens(t *testing.T) {
	t.Parallel()
	const prefix = "/registry/pods/"
	token := storage.ContinueToken(prefix+"a", 7)
	start, opts, err := storage.ListOptions{Continue: token}.From(prefix)
	if err != nil || start != prefix+"a\x00" || opts.Match != storage.Exact || opts.Revision != 7 {
		t.Fatalf("from %q %+v, %v", start, opts, err)
	}
	if token, err = storage.ContinueAtLatest(token); err != nil {
		t.Fatal(err)
	}
	start, opts, err = storage.ListOptions{Continue: token}.From(prefix)
	if err != nil || start != prefix+"a\x00" || opts.Match != storage.Latest || opts.Revision != 0 {
		t.Fatalf("from %q %+v, %v", start, opts, err)
	}
	for _, bad := range []string{"x", "e30", "\x00", storage.ContinueToken("/registry/other/a", 7)} {
		if _, _, err := (storage.ListOptions{Continue: bad}).From(prefix); !errors.Is(err, storage.ErrBadContinue) {
			t.Errorf("token %q: %v", bad, err)
		}
	}
	if _, err := storage.ContinueAtLatest("x"); !errors.Is(err, storage.ErrBadContinue) {
		t.Errorf("error %v", err)
	}
}

func TestPageReadsOnlyWhatItNeeds(t *testing.T) {
	t.Parallel()
	var items []*storage.Item
	for _, k := range []string{"a", "b", "c", "d", "e", "f"} {
		items = append(items, &storage.Item{Key: k})
	}
	read := 0
	seq := func(yield func(*storage.Item) bool) {
		for _, i := range items {
			if read++; !yield(i) {
				return
			}
		}
	}
	odd := func(i *storage.Item) bool { return slices.Index(items, i)%2 == 0 }
	l := storage.Page(seq, 9, storage.ListOptions{Limit: 1, Filter: odd})
	if len(l.Items) != 1 || l.Continue == "" || l.Remaining != -1 || read != 3 {
		t.Fatalf("%+v after reading %d", l, read)
	}
	if l := storage.Page(seq, 9, storage.ListOptions{Limit: 3, Filter: odd}); l.Continue != "" || l.Remaining != 0 {
		t.Fatalf("the last page says that more follows: %+v", l)
	}
}

// TestEncodings: an item keeps each form it was asked for, until nobody has asked for a while, or until its change is
// old news.
func TestEncodings(t *testing.T) {
	t.Parallel()
	var list, event storage.Form
	made := map[*storage.Form]int{}
	item := &storage.Item{}
	get := func(form *storage.Form, keep storage.Keep) string {
		b, err := item.Encoded(form, keep, func(*storage.Item) (storage.Bytes, error) {
			made[form]++
			return storage.Whole(fmt.Appendf(nil, "%d", made[form])), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(b.Flat())
	}
	both := func() string { return get(&list, storage.WhileAsked) + get(&event, storage.WhileRecent) }
	if got := both() + both(); got != "1111" {
		t.Fatalf("kept forms were made again: %s", got)
	}
	item.DropRecent()
	if got := both(); got != "12" {
		t.Fatalf("after the change is old: %s", got)
	}
	for range 3 { // asked for now and then
		for range 4 {
			item.Sweep()
		}
		if got := get(&list, storage.WhileAsked); got != "1" {
			t.Fatalf("a used encoding was dropped: %s", got)
		}
	}
	for range 6 {
		item.Sweep()
	}
	if got := both(); got != "23" {
		t.Fatalf("an unused encoding was kept: %s", got)
	}
	item.DropEncodings()
	item.DropRecent()
	if got := both(); got != "34" {
		t.Fatalf("after all were dropped: %s", got)
	}
	bad := errors.New("bad")
	if _, err := (&storage.Item{}).Encoded(&list, storage.WhileAsked, func(*storage.Item) (storage.Bytes, error) {
		return storage.Bytes{}, bad
	}); !errors.Is(err, bad) {
		t.Fatalf("error %v", err)
	}
}

// TestDecoded: an item is decoded once for all who ask, until nobody has for a while.
func TestDecoded(t *testing.T) {
	t.Parallel()
	item := &storage.Item{}
	made := 0
	get := func() any {
		d, err := item.Decoded(func(*storage.Item) (any, error) { made++; return made, nil })
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for range 3 {
		for range 4 {
			item.Sweep()
		}
		if got := get(); got != 1 {
			t.Fatalf("decoded again: %v", got)
		}
	}
	item.DropEncodings() // is not about it
	if got := get(); got != 1 {
		t.Fatalf("decoded again: %v", got)
	}
	for range 6 {
		item.Sweep()
	}
	if got := get(); got != 2 {
		t.Fatalf("kept although nobody asked: %v", got)
	}
	bad := errors.New("bad")
	if _, err := (&storage.Item{}).Decoded(func(*storage.Item) (any, error) { return nil, bad }); !errors.Is(err, bad) {
		t.Fatalf("error %v", err)
	}
}

// TestEncodingsAtOnce: all that ask at the same time get the same bytes, whatever is dropped meanwhile.
func TestEncodingsAtOnce(t *testing.T) {
	t.Parallel()
	var forms [3]storage.Form
	item := &storage.Item{}
	var wg sync.WaitGroup
	for n := range 12 {
		wg.Go(func() {
			for range 200 {
				form := &forms[n%3]
				b, err := item.Encoded(form, storage.Keep(n%2), func(*storage.Item) (storage.Bytes, error) {
					return storage.Whole([]byte{byte(n % 3)}), nil
				})
				if err != nil || b.Flat()[0] != byte(n%3) {
					t.Errorf("form %d is %v, %v", n%3, b, err)
				}
				switch n {
				case 0:
					item.DropRecent()
				case 1:
					item.Sweep()
				case 2:
					item.DropEncodings()
				}
			}
		})
	}
	wg.Wait()
}

func TestFacts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70_000)
	names := []string{"a", "b", "metadata.name"}
	for _, c := range []struct{ labels, fields map[string]string }{
		{}, {map[string]string{"": ""}, map[string]string{"a": ""}},
		{map[string]string{"k": "v", "l": "", "é": long, long: "é"},
			map[string]string{"b": long, "metadata.name": "n"}},
		{map[string]string{strings.Repeat("y", 127): strings.Repeat("y", 128)},
			map[string]string{"a": "x", "b": "y", "metadata.name": "z"}},
	} {
		f := storage.NewFacts(&names, c.labels, c.fields)
		for _, k := range []string{"", "k", "l", "v", "é", long, strings.Repeat("y", 127), "nosuch"} {
			want, has := c.labels[k]
			if got, ok := f.Labels().Lookup(k); got != want || ok != has || f.Labels().Has(k) != has ||
				f.Labels().Get(k) != want {
				t.Errorf("label %.9q is %.9q, %v, want %.9q, %v", k, got, ok, want, has)
			}
		}
		for _, k := range append(names, "nosuch") {
			if got := f.Fields().Get(k); got != c.fields[k] || f.Fields().Has(k) != slices.Contains(names, k) {
				t.Errorf("field %s is %.9q, want %.9q", k, got, c.fields[k])
			}
		}
	}
	none := storage.Facts{}
	if none.Known() || none.Labels().Has("") || none.Fields().Has("a") || none.Fields().Get("a") != "" {
		t.Error("no facts are some")
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	sum := func(pairs ...any) (f storage.Fingerprint) {
		for i := 0; i < len(pairs); i += 2 {
			f.Add(pairs[i].(string), int64(pairs[i+1].(int)))
		}
		return f
	}
	base := sum("a", 1, "b", 2)
	if base != sum("a", 1, "b", 2) {
		t.Error("the same keys differ")
	}
	for name, other := range map[string]storage.Fingerprint{
		"revision": sum("a", 1, "b", 3), "key": sum("a", 1, "c", 2), "missing": sum("a", 1),
		"swapped": sum("a", 2, "b", 1),
	} {
		if other == base {
			t.Errorf("%s: no difference", name)
		}
	}
}
