package rest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"bonsai/api/resources"
)

// counted is a ConfigMap that counts how often it is made JSON.
type counted struct {
	corev1.ConfigMap
	encoded *atomic.Int64
}

func (c *counted) DeepCopyObject() runtime.Object {
	return &counted{*c.ConfigMap.DeepCopy(), c.encoded}
}

func (c *counted) MarshalJSON() ([]byte, error) {
	c.encoded.Add(1)
	return json.Marshal(&c.ConfigMap)
}

// things is a resource that counts what is made of its objects: JSON, objects of version v2, rows of tables.
type things struct{ encoded, converted, rows atomic.Int64 }

func (c *things) row() resources.Row {
	return resources.Row{
		GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}, Resource: "things",
		Singular: "thing", Namespaced: true,
		StoragePath: "example.com/things", New: func() runtime.Object { return &counted{encoded: &c.encoded} },
		Versions: []resources.Version{{Name: "v1"}, {Name: "v2", New: func() runtime.Object {
			return &corev1.ConfigMap{}
		},
			ToHub: func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
				return &counted{*obj.(*corev1.ConfigMap), &c.encoded}, nil
			},
			FromHub: func(_ context.Context, obj runtime.Object) (runtime.Object, error) {
				c.converted.Add(1)
				out := obj.(*counted).ConfigMap.DeepCopy()
				out.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Thing"})
				return out, nil
			}}},
		Columns: []metav1.TableColumnDefinition{{Name: "Name", Type: "string"}},
		Cells: func(obj runtime.Object, now time.Time) []any {
			c.rows.Add(1)
			return []any{obj.(*counted).Name + " at " + now.UTC().Format(time.TimeOnly)}
		},
	}
}

const thingsPath = "/apis/example.com/v1/namespaces/ns/things"

// put creates or replaces thing "a" by a client that speaks protobuf.
func putThing(t *testing.T, s *served, method string, value int) {
	t.Helper()
	path := thingsPath
	if method == http.MethodPut {
		path += "/a"
	}
	body := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"data":{"x":"%d"}}`,
		value)
	if code, _, b := s.do(t, method, path, asProto, body); code >= 300 {
		t.Fatalf("%d %s", code, b)
	}
}

// follow opens a watch, of what happens from now on unless initial events are asked for, and returns what reads its
// frames.
func follow(t *testing.T, server *httptest.Server, path, accept string) func() frame {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	in := bufio.NewReader(resp.Body)
	return func() frame {
		f, err := nextFrame(in, strings.Contains(resp.Header.Get("Content-Type"), "protobuf"))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}

// TestWatchersShare: whatever form the watchers of a change want, it is made for all of them; what a watch begins with
// is made for each.
func TestWatchersShare(t *testing.T) {
	t.Parallel()
	const v2 = "/apis/example.com/v2/namespaces/ns/things"
	for _, c := range []struct {
		name, path, accept string
		made               func(*things) *atomic.Int64
	}{
		{"JSON", thingsPath, asJSON, func(c *things) *atomic.Int64 { return &c.encoded }},
		{"another version as JSON", v2, asJSON, func(c *things) *atomic.Int64 { return &c.converted }},
		{"another version as protobuf", v2, asProto, func(c *things) *atomic.Int64 { return &c.converted }},
		{"table", thingsPath, asTable, func(c *things) *atomic.Int64 { return &c.rows }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			counts := &things{}
			now := time.Unix(1000, 0)
			s := newServedAt(t, []resources.Row{counts.row()}, func() time.Time { return now })
			putThing(t, s, http.MethodPost, 0)
			made := c.made(counts)
			server := httptest.NewServer(s)
			t.Cleanup(server.Close)
			list := read(t, s.get(t, thingsPath, asTable, asJSON))
			made.Store(0)
			from := c.path + "?watch=1&resourceVersion=" + list.GetResourceVersion()
			a, b := follow(t, server, from, c.accept), follow(t, server, from, c.accept)
			var told []frame
			for i := range 4 {
				putThing(t, s, http.MethodPut, i+1)
				told = append(told, a())
				b()
			}
			if n := made.Load(); n < 4 || n > 8 { // both may ask first
				t.Errorf("made %d times for 4 changes", n)
			}
			made.Store(0)
			late := follow(t, server, from, c.accept)
			for _, want := range told {
				if f := late(); f.kind != want.kind || string(f.object) != string(want.object) {
					t.Errorf("%s %s, another watcher was told %s %s", f.kind, f.object, want.kind, want.object)
				}
			}
			if n := made.Load(); n != 0 {
				t.Errorf("made %d times more for another watcher", n)
			}
			if c.name == "JSON" { // the stored kind's is kept for gets and lists, too
				return
			}
			made.Store(0)
			for range 2 {
				follow(t, server, c.path+"?watch=1", c.accept)()
			}
			if n := made.Load(); n != 2 {
				t.Errorf("made %d times for the initial events of 2 more watchers", n)
			}
		})
	}
}

// TestRowsTellTheTime: a row is shared only while the age in it is right.
func TestRowsTellTheTime(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	counts := &things{}
	s := newServedAt(t, []resources.Row{counts.row()}, func() time.Time { return time.Unix(now.Load(), 0) })
	putThing(t, s, http.MethodPost, 0)
	from := "?watch=1&resourceVersion=" + read(t, s.get(t, thingsPath, asTable, asJSON)).GetResourceVersion()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	a, b := follow(t, server, thingsPath+from, asTable), follow(t, server, thingsPath+from, asTable)
	putThing(t, s, http.MethodPut, 1)
	a()
	b()
	now.Store(3600)
	if late := follow(t, server, thingsPath+from,
		asTable)(); !strings.Contains(string(late.object), `["a at 01:00:00"]`) {
		t.Errorf("an hour later: %s", late.object)
	}
}

// TestJSONOnlyForWhoAsks: a write by a client that speaks protobuf, or wants the metadata only, makes no JSON of the
// object.
func TestJSONOnlyForWhoAsks(t *testing.T) {
	t.Parallel()
	counts := &things{}
	s := newServed(t, []resources.Row{counts.row()})
	putThing(t, s, http.MethodPost, 0)
	putThing(t, s, http.MethodPut, 1)
	const body = `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"data":{"x":"2"}}`
	if code, _, b := s.do(t, http.MethodPut, thingsPath+"/a", metaForm("PartialObjectMetadata", asJSON),
		body); code != http.StatusOK {
		t.Fatalf("%d %s", code, b)
	}
	if n := counts.encoded.Load(); n != 0 {
		t.Errorf("%d objects were made JSON, which nobody asked for", n)
	}
	for range 2 {
		if code, _, b := s.do(t, http.MethodPut, thingsPath+"/a", asJSON,
			strings.Replace(body, "2", "3", 1)); code != http.StatusOK {
			t.Fatalf("%d %s", code, b)
		}
		s.get(t, thingsPath+"/a", asJSON, asJSON)
	}
	if n := counts.encoded.Load(); n != 1 {
		t.Errorf("made JSON %d times, want 1", n)
	}
	if code, _, b := s.do(t, http.MethodDelete, thingsPath+"/a", asProto, ""); code != http.StatusOK {
		t.Fatalf("%d %s", code, b)
	}
}
