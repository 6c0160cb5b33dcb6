package catalog_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/assemble/assembletest"
	"bonsai/pkg/apiserver/catalog"
	"bonsai/pkg/apiserver/registry"
	"bonsai/pkg/apiserver/request"
	"bonsai/pkg/apiserver/storage"
	"bonsai/pkg/apiserver/storage/memory"
)

// world is a catalog, and what it tells of its changes.
type world struct {
	*catalog.Catalog
	t         *testing.T
	facts     *storage.FactsTable
	storage   storage.Interface
	forgotten []string
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, facts: &storage.FactsTable{}}
	w.storage = memory.New(w.facts)
	var err error
	w.Catalog, err = catalog.New(t.Context(), catalog.Config{Facts: w.facts, Forget: func(prefix string) {
		w.forgotten = append(w.forgotten, prefix)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// thing is a row of a resource whose objects are config maps.
func thing(name string) resources.Row {
	return resources.Row{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"},
		Resource: name, StoragePath: "example.com/" + name,
		New: resources.Make[corev1.ConfigMap]}
}

func same(_ context.Context, obj runtime.Object) (runtime.Object, error) { return obj, nil }

// view is a row that shows the objects of the row of.
func view(name string, of resources.Row) resources.Row {
	v := thing(name)
	v.StoragePath = of.StoragePath
	v.Stored, v.Versions = &of.GVK, []resources.Version{{Name: "v1", ToHub: same, FromHub: same}}
	return v
}

func (w *world) entries(rows ...resources.Row) []catalog.Entry {
	return assembletest.Entries(w.t, w.storage, rows)
}

func name(resource string) schema.GroupResource {
	return schema.GroupResource{Group: "example.com", Resource: resource}
}

// What does not fit is refused with the name of its row, and what came with it is not served either.
func TestAddAllOrNothing(t *testing.T) {
	t.Parallel()
	sub := thing("subs")
	sub.Subresources = []resources.Subresource{{Name: "poke", Verbs: []string{"create"}}}
	review := thing("reviews")
	review.NotStored, review.StoragePath = true, ""
	below, above := thing("belows"), thing("aboves")
	below.StoragePath, above.StoragePath = "example.com/things/more", "example.com"
	for what, c := range map[string]struct {
		row    resources.Row
		change func(*catalog.Entry)
		want   string
	}{
		"name":             {row: thing("things"), want: "serve things.example.com: the name is taken"},
		"name in one call": {row: thing("news"), want: "serve news.example.com: the name is taken"},
		"path below": {row: below,
			want: `serve belows.example.com: its path "example.com/things/more" in storage is taken by things.example.com`},
		"path above": {row: above,
			want: `serve aboves.example.com: its path "example.com" in storage is taken by`},
		"versions": {row: func() resources.Row {
			r := thing("a")
			r.Versions = []resources.Version{{Name: "v1"}, {Name: "v2"}}
			return r
		}(), want: "serve a.example.com: version v2 is not the stored one and does not convert"},
		"view of nothing": {row: view("views", thing("others")),
			want: "serve views.example.com: it is a view of example.com/others, which is not served"},
		"no store": {row: thing("a"), change: func(e *catalog.Entry) {
			e.Store = nil
		}, want: "it is stored, and has no store"},
		"store and creater": {row: thing("a"), change: func(e *catalog.Entry) {
			e.Creater = assembletest.Nobody{}
		}, want: "its store answers, and so does a creater"},
		"no creater": {row: review, change: func(e *catalog.Entry) {
			e.Creater = nil
		}, want: "it is not stored, and nobody answers its create"},
		"subresource": {row: sub, change: func(e *catalog.Entry) {
			e.Subresources = nil
		}, want: `serve subs.example.com: nobody answers for its subresource "poke"`},
		"no way": {row: sub, change: func(e *catalog.Entry) {
			e.Subresources["poke"] = registry.Answerer{}
		}, want: "it is answered in 0 ways, not in one"},
		"two ways": {row: sub, change: func(e *catalog.Entry) {
			e.Subresources["poke"] = registry.Answerer{Creater: assembletest.Nobody{}, Connecter: assembletest.Nobody{}}
		}, want: "in 2 ways"},
		"unknown answerer": {row: thing("a"), change: func(e *catalog.Entry) {
			e.Subresources = map[string]registry.Answerer{"x": {}}
		}, want: `an answerer for "x", which is no subresource of it`},
		"handler that fails": {row: thing("a"), change: func(e *catalog.Entry) {
			e.Handle = func(*catalog.Route) (catalog.Handler, error) { return nil, http.ErrAbortHandler }
		}, want: "abort"},
	} {
		w := newWorld(t)
		if err := w.Add(w.entries(thing("things"))...); err != nil {
			t.Fatal(err)
		}
		was := w.Snapshot()
		entries := w.entries(thing("news"), c.row)
		if c.change != nil {
			c.change(&entries[1])
		}
		if err := w.Add(entries...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
		if w.Snapshot() != was {
			t.Errorf("%s: something is served", what)
		}
		if prefix, _ := w.facts.Resource("/registry/example.com/news/x"); prefix != "" {
			t.Errorf("%s: the facts of %s are known", what, prefix)
		}
	}
}

// A view stands on the row whose objects it shows: they come together and go together.
func TestViews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.Add(w.entries(thing("things"), view("views", thing("things")))...); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(name("things")); err == nil ||
		err.Error() != "stop serving things.example.com: views.example.com shows its objects" {
		t.Errorf("the row behind: %v", err)
	}
	if err := w.Remove(name("views")); err != nil || len(w.forgotten) != 0 {
		t.Errorf("the view alone: %v, forgotten %v", err, w.forgotten)
	}
	if err := w.Add(w.entries(view("views", thing("things")))...); err != nil {
		t.Fatal(err)
	}
	if err := w.Remove(name("things"), name("views")); err != nil || len(w.forgotten) != 1 ||
		w.forgotten[0] != "/registry/example.com/things/" {
		t.Errorf("both: %v, forgotten %v", err, w.forgotten)
	}
}

// Who holds a snapshot sees what was served then; the resource's context tells that it is over.
func TestRemove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := w.Add(w.entries(thing("things"), thing("others"))...); err != nil {
		t.Fatal(err)
	}
	was := w.Snapshot()
	gvr := name("things").WithVersion("v1")
	if err := w.Remove(name("things"), name("nothings")); err == nil ||
		err.Error() != "stop serving nothings.example.com: it is not served" || w.Snapshot() != was {
		t.Errorf("one that is not served: %v", err)
	}
	if err := w.Remove(name("things")); err != nil {
		t.Fatal(err)
	}
	if was.Route(gvr) == nil || was.Route(gvr).Context().Err() == nil ||
		was.Resource(name("others")).Context().Err() != nil {
		t.Error("the old snapshot, or the contexts, are wrong")
	}
	now := w.Snapshot()
	if now.Route(gvr) != nil || now.Resource(name("things")) != nil || !now.HasGroup("example.com") ||
		now.Generation() == was.Generation() || w.Store(name("things")) != nil {
		t.Error("it is still served")
	}
	if prefix, _ := w.facts.Resource("/registry/example.com/things/x"); prefix != "" {
		t.Error("its facts are still known")
	}
	if err := w.Add(w.entries(thing("things"))...); err != nil {
		t.Errorf("again: %v", err)
	}
}

// A store that is not there yet is not an empty one.
func TestLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.Late(name("things"))
	calls := map[string]func() error{
		"get":        func() error { _, err := s.Get(t.Context(), "", "a"); return err },
		"get cached": func() error { _, err := s.GetCached(t.Context(), "", "a"); return err },
		"list":       func() error { _, err := s.List(t.Context(), "", ""); return err },
		"create": func() error {
			_, err := s.Create(t.Context(), "", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b"}},
				&metav1.CreateOptions{})
			return err
		},
		"update": func() error {
			_, err := s.Update(t.Context(), "", "a", "", func(obj runtime.Object) (runtime.Object, error) {
				return obj, nil
			}, &metav1.UpdateOptions{})
			return err
		},
		"delete": func() error { _, _, err := s.Delete(t.Context(), "", "a", &metav1.DeleteOptions{}); return err },
	}
	for what, call := range calls {
		if err := call(); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("%s before: %v", what, err)
		}
	}
	if err := w.Add(w.entries(thing("things"))...); err != nil {
		t.Fatal(err)
	}
	for what, call := range calls {
		if err := call(); what != "create" && what != "list" && !apierrors.IsNotFound(err) ||
			(what == "create" || what == "list") && err != nil {
			t.Errorf("%s after: %v", what, err)
		}
	}
}

// A request finds its route in what was served when it came, without a lock and without memory.
func TestOf(t *testing.T) {
	w := newWorld(t)
	if err := w.Add(w.entries(thing("things"))...); err != nil {
		t.Fatal(err)
	}
	info := &request.Info{Served: w.Snapshot()}
	gvr := name("things").WithVersion("v1")
	if n := testing.AllocsPerRun(100, func() { info.Served = w.Snapshot(); catalog.Of(info).Route(gvr) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := w.Remove(name("things")); err != nil {
		t.Fatal(err)
	}
	info.Served = nil
	if catalog.Of(info).Route(gvr) != nil || catalog.Of(info).HasGroup("example.com") {
		t.Error("a request without a snapshot is served something")
	}
}
