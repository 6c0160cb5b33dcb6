package storage_test

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"bonsai/pkg/apiserver/storage"
)

func TestFactsTable(t *testing.T) {
	t.Parallel()
	named := func(n string) storage.FactsFunc {
		return func([]byte) (storage.Facts, error) { return storage.Facts{Labels: labels.Set{"by": n}}, nil }
	}
	table := &storage.FactsTable{}
	for _, p := range []string{"/registry/pods/", "/registry/services/specs/", "/registry/services/endpoints/", "/registry/example.com/widgets/"} {
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
		if err != nil || facts.Labels["by"] != want {
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

func TestSweep(t *testing.T) {
	t.Parallel()
	made := 0
	item := &storage.Item{}
	get := func() {
		if _, err := item.Encoded(storage.Protobuf, func(*storage.Item) ([]byte, error) { made++; return []byte("x"), nil }); err != nil {
			t.Fatal(err)
		}
	}
	get()
	item.Sweep() // used since it was made
	get()
	if made != 1 {
		t.Fatalf("a used encoding was dropped: made %d times", made)
	}
	item.Sweep()
	item.Sweep()
	get()
	if made != 2 {
		t.Fatalf("an unused encoding was kept: made %d times", made)
	}
	bad := errors.New("bad")
	if _, err := item.Encoded(storage.JSON, func(*storage.Item) ([]byte, error) { return nil, bad }); !errors.Is(err, bad) {
		t.Fatalf("error %v", err)
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
		"revision": sum("a", 1, "b", 3), "key": sum("a", 1, "c", 2), "missing": sum("a", 1), "swapped": sum("a", 2, "b", 1),
	} {
		if other == base {
			t.Errorf("%s: no difference", name)
		}
	}
}
