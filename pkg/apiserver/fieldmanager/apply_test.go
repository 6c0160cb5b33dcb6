package fieldmanager

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/registry"
)

// configOf returns an object as decoded JSON, without the fields that no client applies.
func configOf(t *testing.T, obj runtime.Object, row *resources.Row) map[string]any {
	t.Helper()
	obj = obj.DeepCopyObject()
	obj.GetObjectKind().SetGroupVersionKind(row.StoredGVK())
	access, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	access.SetManagedFields(nil)
	access.SetUID("")
	access.SetResourceVersion("")
	doc, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := utiljson.Unmarshal(doc, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// thin leaves out about one in n parts of a configuration, and makes a few odd: empty, null, zero or of another type.
func (r random) thin(v any, n int) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch {
			case r.IntN(n) == 0:
				delete(v, key)
			case r.IntN(300) == 0:
				v[key] = []any{map[string]any{}, nil, "", int64(0), false, []any{}, int64(7), "x"}[r.IntN(8)]
			default:
				v[key] = r.thin(v[key], n)
			}
		}
		if r.IntN(500) == 0 {
			v["unknown"] = "x"
		}
		return v
	case []any:
		for i := range v {
			v[i] = r.thin(v[i], 3*n)
		}
		if len(v) > 0 && r.IntN(2*n) == 0 {
			v = v[:len(v)-1]
		}
		if len(v) > 1 && r.IntN(20) == 0 {
			v[0], v[1] = v[1], v[0]
		}
		return v
	}
	return v
}

// On random histories of applies and updates by several managers, for every kind, the fast path gives the objects and
// entries that the library gives. It changes nothing if it leaves an apply to the library.
func TestApplyFastMatchesLibrary(t *testing.T) {
	t.Parallel()
	const histories, writesEach = 2, 12
	fast, changed, all := 0, 0, 0
	m := newManager(t)
	for row := range stored() {
		for seed := range uint64(histories) {
			h := newHistory(t, m, row, seed)
			for range writesEach {
				h.write()
			}
			fast, changed, all = fast+h.fast, changed+h.changed, all+h.all
		}
	}
	if fast < all/4 || changed < fast/10 {
		t.Errorf("only %d of %d applies were fast, and %d of these changed anything: the test shows little",
			fast, all, changed)
	}
	t.Logf("%d of %d applies were fast, %d of them changed an object", fast, all, changed)
}

// A configuration may leave a struct with unowned fields empty, or set it to null. The fast path has the struct in the
// set if the library has it.
func TestApplyFastOfEmptyStructs(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	for row := range stored() {
		for _, config := range []map[string]any{{"spec": map[string]any{}}, {"metadata": map[string]any{}},
			{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{}, "status": nil}} {
			h := newHistory(t, m, row, 1)
			for _, name := range []string{"k", "k", "l"} {
				config = runtime.DeepCopyJSON(config)
				config["apiVersion"], config["kind"] = row.StoredGVK().ToAPIVersionAndKind()
				h.apply(registry.Writer{Name: name, Version: row.StoredGVK().Version, At: time.Now()}, config)
			}
		}
	}
}

// FuzzApply is TestApplyFastMatchesLibrary for one kind.
func FuzzApply(f *testing.F) {
	m, kinds := newManager(f), slices.Collect(stored())
	f.Add(uint64(1), uint16(3), uint8(12))
	f.Fuzz(func(t *testing.T, seed uint64, kind uint16, writes uint8) {
		h := newHistory(t, m, kinds[int(kind)%len(kinds)], seed)
		for range writes % 16 {
			h.write()
		}
	})
}

// history is a random history of writes to one object.
type history struct {
	*testing.T
	random
	m    *Manager
	row  *resources.Row
	live runtime.Object
	// last has the last configuration of each manager.
	last               map[string]map[string]any
	fast, changed, all int
}

func newHistory(t *testing.T, m *Manager, row *resources.Row, seed uint64) *history {
	return &history{T: t, m: m, row: row, random: random{rand.New(rand.NewPCG(seed, 2))},
		last: map[string]map[string]any{}}
}

func (h *history) write() {
	by := registry.Writer{Name: []string{"k", "l", "m", "kubectl"}[h.IntN(4)], Version: h.row.StoredGVK().Version,
		Subresource: []string{"", "", "", "status"}[h.IntN(4)], At: time.Now()}
	if h.live != nil && h.IntN(4) == 0 {
		h.update(by)
		return
	}
	config := runtime.DeepCopyJSON(h.last[by.Name])
	switch h.IntN(4) {
	case 0, 1: // something else
		obj, sparse := h.row.New(), 1
		if h.live != nil {
			obj, sparse = h.live.DeepCopyObject(), 1+h.IntN(6)
		}
		h.fill(reflect.ValueOf(obj).Elem(), sparse, 0)
		config = h.thin(configOf(h.T, obj, h.row), 2+h.IntN(8)).(map[string]any)
	case 2: // some more
		if h.live != nil {
			more := configOf(h.T, h.live, h.row)
			for key, v := range config {
				more[key] = v
			}
			config = more
		}
	}
	if config == nil {
		return
	}
	config["apiVersion"], config["kind"] = h.row.StoredGVK().ToAPIVersionAndKind()
	h.apply(by, config)
}

func (h *history) update(by registry.Writer) {
	obj := h.live.DeepCopyObject()
	h.fill(reflect.ValueOf(obj).Elem(), 1+h.IntN(6), 0)
	if obj = h.stored(obj); obj == nil {
		return
	}
	access, _ := meta.Accessor(obj)
	access.SetUID("u")
	if err := h.m.updateByLibrary(h.Context(), writeTarget{h.row, by.Version, by.Subresource}, by, h.live,
		obj); err == nil {
		h.live = obj
	}
}

// stored returns obj as storage returns it: with defaults, and without empty lists that JSON omits. It returns nil for
// an object that cannot be stored.
func (h *history) stored(obj runtime.Object) runtime.Object {
	doc, err := json.Marshal(obj)
	if err != nil {
		h.Fatal(err)
	}
	out := h.row.New()
	if json.Unmarshal(doc, out) != nil {
		return nil
	}
	out.GetObjectKind().SetGroupVersionKind(h.row.StoredGVK())
	converter{row: h.row}.Default(out)
	return out
}

func (h *history) apply(by registry.Writer, config map[string]any) {
	w := writeTarget{h.row, by.Version, by.Subresource}
	applied := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: runtime.DeepCopyJSON(config)}
	}
	live := func() runtime.Object {
		if h.live == nil {
			return nil
		}
		return h.live.DeepCopyObject()
	}
	long, refused := h.m.applyByLibrary(h.Context(), w, by, live(), applied(), false)
	given := live()
	got, err := h.m.applyFast(w, by, given, applied())
	h.all++
	switch {
	case errors.Is(err, errNeedsLibrary):
		if h.live != nil && jsonOf(h.T, given) != jsonOf(h.T, orEmpty(live(), h.row)) {
			h.Fatalf("%s: changed, but left to the library", h.row.GVK)
		}
	case refused != nil:
		h.Fatalf("%s: the library refuses %v: %v", h.row.GVK, config, refused)
	case err != nil:
		h.Fatalf("%s: %v", h.row.GVK, err)
	default:
		h.fast++
		if fields, want := entriesOf(h.T, got), entriesOf(h.T, long); !slices.Equal(fields, want) {
			h.Fatalf("%s, %v applied by %s %q to %s:\ngot  %q\nwant %q", h.row.GVK, config, by.Name, by.Subresource,
				jsonOf(h.T, h.live), fields, want)
		}
		if got, want := jsonOf(h.T, got), jsonOf(h.T, long); got != want {
			h.Fatalf("%s, %v applied by %s %q to %s:\ngot  %s\nwant %s", h.row.GVK, config, by.Name, by.Subresource,
				jsonOf(h.T, h.live), got, want)
		}
		if h.live != nil && jsonOf(h.T, h.live) != jsonOf(h.T, long) {
			h.changed++
		}
	}
	if refused == nil {
		converter{row: h.row}.Default(long) // as the store does: a field that is no longer applied may have a default
		h.last[by.Name] = config
		if h.live = h.stored(long); h.live == nil {
			return
		}
		access, _ := meta.Accessor(h.live)
		access.SetUID("u")
	}
}

// jsonOf returns an object's JSON without its entries.
func jsonOf(t *testing.T, obj runtime.Object) string {
	t.Helper()
	if obj == nil {
		return "nothing"
	}
	doc, err := json.Marshal(withoutFields(obj))
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}
