package storagetest

import (
	"fmt"
	"slices"
	"sync"

	"bonsai/pkg/apiserver/storage"
)

func testList(e *env) {
	empty := e.list(Prefix, storage.ListOptions{Match: storage.Latest})
	if len(empty.Items) != 0 || empty.Revision == 0 || empty.Continue != "" || empty.Remaining != 0 {
		e.Fatalf("empty list is %+v", empty)
	}
	for _, name := range []string{"c", "a", "b-1", "b"} {
		e.create(name, "red")
	}
	last := e.delete("c")
	l := e.list(Prefix, storage.ListOptions{Match: storage.Latest})
	e.wantNames(l, "a", "b", "b-1")
	if l.Revision < last.Revision {
		e.Fatalf("list is of revision %d, the last write was %d", l.Revision, last.Revision)
	}
}

func testListPrefix(e *env) {
	for _, k := range []string{"ns/a", "ns/b", "ns2/c", "ns-3/d"} {
		if _, err := e.s.Create(e.ctx, Prefix+k, draft("red")); err != nil {
			e.Fatal(err)
		}
	}
	if _, err := e.s.Create(e.ctx, "/registry/thingsother/x", draft("red")); err != nil {
		e.Fatal(err)
	}
	e.wantNames(e.list(Prefix+"ns/", storage.ListOptions{Match: storage.Latest}), "a", "b")
	e.wantNames(e.list(Prefix+"none/", storage.ListOptions{Match: storage.Latest}))
	e.wantNames(e.list(Prefix, storage.ListOptions{Match: storage.Latest}), "d", "a", "b", "c")
}

func testListFilter(e *env) {
	e.create("a", "red")
	e.create("b", "blue")
	e.create("c", "red")
	e.wantNames(e.list(Prefix, storage.ListOptions{Match: storage.Latest, Filter: red}), "a", "c")
	e.wantNames(e.list(Prefix, storage.ListOptions{Filter: func(*storage.Item) bool { return false }}))
}

func testListLinearizable(e *env) {
	for i := range 30 {
		item := e.create(fmt.Sprintf("%03d", i), "red")
		l := e.list(Prefix, storage.ListOptions{Match: storage.Latest})
		if len(l.Items) != i+1 || l.Revision < item.Revision {
			e.Fatalf("%d items at revision %d after creating %d, the last at %d", len(l.Items), l.Revision, i+1,
				item.Revision)
		}
	}
}

func testListNotOlderThan(e *env) {
	e.create("a", "red")
	b := e.create("b", "red")
	l := e.list(Prefix, storage.ListOptions{Revision: b.Revision})
	e.wantNames(l, "a", "b")
	if l.Revision < b.Revision {
		e.Fatalf("list is of revision %d, older than %d", l.Revision, b.Revision)
	}
	e.list(Prefix, storage.ListOptions{}) // whatever is at hand
}

func testListExact(e *env) {
	a := e.create("a", "red")
	b := e.create("b", "red")
	blue := e.update("a", "blue")
	gone := e.delete("b")
	e.create("c", "red")
	for _, c := range []struct {
		revision int64
		want     []string
		filter   func(*storage.Item) bool
	}{
		{a.Revision, []string{"a"}, nil},
		{b.Revision, []string{"a", "b"}, nil},
		{b.Revision, []string{"a", "b"}, red},
		{blue.Revision, []string{"b"}, red},
		{gone.Revision, []string{"a"}, nil},
	} {
		l := e.list(Prefix, storage.ListOptions{Match: storage.Exact, Revision: c.revision, Filter: c.filter})
		e.wantNames(l, c.want...)
		if l.Revision != c.revision {
			e.Fatalf("list is of revision %d, want exactly %d", l.Revision, c.revision)
		}
	}
}

func testListFuture(e *env) {
	far := e.create("a", "red").Revision + 1000
	for _, match := range []storage.Match{storage.NotOlderThan, storage.Exact} {
		_, err := e.s.List(e.ctx, Prefix, storage.ListOptions{Match: match, Revision: far})
		e.wantErr(err, storage.ErrFuture)
	}
}

func (e *env) createMany(n int) (names []string) {
	for i := range n {
		name := fmt.Sprintf("%04d", i)
		e.create(name, []string{"red", "blue"}[i%2])
		names = append(names, name)
	}
	return names
}

// pages lists page by page and calls between before each page but the first.
func (e *env) pages(opts storage.ListOptions, between func()) (got []string, lists []*storage.List) {
	e.Helper()
	for {
		l := e.list(Prefix, opts)
		lists = append(lists, l)
		got = append(got, names(l.Items)...)
		if l.Continue == "" {
			return got, lists
		}
		if int64(len(l.Items)) != opts.Limit {
			e.Fatalf("a page of %d items is followed by another, the limit is %d", len(l.Items), opts.Limit)
		}
		opts = storage.ListOptions{Limit: opts.Limit, Filter: opts.Filter, Continue: l.Continue}
		between()
	}
}

func testPages(e *env) {
	want := e.createMany(10)
	for limit := int64(1); limit <= 11; limit++ {
		got, lists := e.pages(storage.ListOptions{Match: storage.Latest, Limit: limit}, func() {})
		if !slices.Equal(got, want) {
			e.Fatalf("limit %d: pages gave %v", limit, got)
		}
		left := int64(10)
		for _, l := range lists {
			left -= int64(len(l.Items))
			if l.Remaining != left || l.Revision != lists[0].Revision {
				e.Fatalf("limit %d: %d remain at revision %d, want %d at %d", limit, l.Remaining, l.Revision, left,
					lists[0].Revision)
			}
		}
	}
}

func testPagesFiltered(e *env) {
	e.createMany(10)
	got, lists := e.pages(storage.ListOptions{Match: storage.Latest, Limit: 2, Filter: red}, func() {})
	if !slices.Equal(got, []string{"0000", "0002", "0004", "0006", "0008"}) || len(lists) != 3 {
		e.Fatalf("%d pages gave %v", len(lists), got)
	}
	if lists[0].Remaining != -1 || lists[2].Remaining != 0 {
		e.Fatalf("remaining %d and %d, want -1 (not known) and 0", lists[0].Remaining, lists[2].Remaining)
	}
}

// testPagesUnderWrites: all pages are of one revision, whatever is written between and beside them.
func testPagesUnderWrites(e *env) {
	want := e.createMany(50)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := fmt.Sprintf("x%04d", i)
			e.create(name, "red")
			e.update(want[i%50], "green")
			e.delete(name)
		}
	})
	got, lists := e.pages(storage.ListOptions{Match: storage.Latest, Limit: 7}, func() {
		e.create(fmt.Sprintf("y%d", tick.Add(1)), "red")
	})
	close(stop)
	wg.Wait()
	got = slices.DeleteFunc(got, func(n string) bool { return n[0] != '0' })
	if !slices.Equal(got, want) {
		e.Fatalf("pages gave %v", got)
	}
	for _, l := range lists {
		for _, item := range l.Items {
			if item.Revision > lists[0].Revision {
				e.Fatalf("%s of revision %d is on a page of a list of revision %d", item.Key, item.Revision,
					lists[0].Revision)
			}
		}
	}
}

func testPagesAtLatest(e *env) {
	e.createMany(6)
	first := e.list(Prefix, storage.ListOptions{Match: storage.Latest, Limit: 2})
	e.create("0003x", "red")
	token, err := storage.ContinueAtLatest(first.Continue)
	if err != nil {
		e.Fatal(err)
	}
	l := e.list(Prefix, storage.ListOptions{Continue: token, Limit: 3})
	e.wantNames(l, "0002", "0003", "0003x")
	e.wantNames(e.list(Prefix, storage.ListOptions{Continue: l.Continue}), "0004", "0005")
}

func testBadContinue(e *env) {
	e.createMany(3)
	good := e.list(Prefix, storage.ListOptions{Match: storage.Latest, Limit: 1}).Continue
	for _, c := range []struct{ prefix, token string }{
		{Prefix, "x"}, {Prefix, "e30"}, {Prefix, "!!!"}, {"/registry/others/", good}, {Prefix + "ns2/", good},
	} {
		_, err := e.s.List(e.ctx, c.prefix, storage.ListOptions{Continue: c.token})
		e.wantErr(err, storage.ErrBadContinue)
	}
}

// testListExpired: after compaction an old revision is either still answered rightly, from a cache, or expired.
func testListExpired(e *env) {
	a := e.create("a", "red")
	e.create("b", "red")
	page := e.list(Prefix, storage.ListOptions{Match: storage.Latest, Limit: 1})
	e.compact(e.create("c", "red").Revision)
	l, err := e.s.List(e.ctx, Prefix, storage.ListOptions{Match: storage.Exact, Revision: a.Revision})
	if err == nil {
		e.wantNames(l, "a")
	} else {
		e.wantErr(err, storage.ErrExpired)
	}
	l, err = e.s.List(e.ctx, Prefix, storage.ListOptions{Continue: page.Continue})
	if err == nil {
		e.wantNames(l, "b")
	} else {
		e.wantErr(err, storage.ErrExpired)
	}
}
