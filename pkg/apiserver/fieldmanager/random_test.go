package fieldmanager

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/api/scheme"
	"bonsai/pkg/apiserver/registry"
)

func newManager(t testing.TB) *Manager {
	t.Helper()
	m, err := New(Config{Scheme: scheme.New(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func rowOf(t testing.TB, resource string) *resources.Row {
	t.Helper()
	for _, r := range rows.All() {
		if r.GroupResource().String() == resource {
			return &r
		}
	}
	t.Fatalf("no row for %s", resource)
	return nil
}

// random fills values. It uses few different strings, so that keys and values repeat.
type random struct{ *rand.Rand }

func (r random) word() string { return []string{"a", "b", "c", "d", ""}[r.IntN(5)] }

// fill changes about one in sparse parts of v, and every part of values that it makes.
func (r random) fill(v reflect.Value, sparse, depth int) {
	if sparse > 1 && depth > 1 && r.IntN(3) == 0 {
		return
	}
	switch p := v.Addr().Interface().(type) {
	case *resource.Quantity:
		if r.IntN(sparse) == 0 {
			*p = resource.MustParse([]string{"1", "1000m", "2Gi", "0"}[r.IntN(4)])
		}
		return
	case *metav1.Time:
		if r.IntN(sparse) == 0 {
			*p = metav1.Unix(int64(1000000+r.IntN(3)), 0)
		}
		return
	case *metav1.MicroTime:
		if r.IntN(sparse) == 0 {
			*p = metav1.NewMicroTime(time.Unix(int64(1000000+r.IntN(3)), 0))
		}
		return
	case *intstr.IntOrString:
		if r.IntN(sparse) == 0 {
			*p = []intstr.IntOrString{intstr.FromInt32(int32(r.IntN(3))), intstr.FromString(r.word())}[r.IntN(2)]
		}
		return
	case *runtime.RawExtension:
		if r.IntN(sparse) == 0 {
			*p = runtime.RawExtension{Raw: fmt.Appendf(nil, `{"a":%d}`, r.IntN(3))}
		}
		return
	}
	here := r.IntN(sparse) == 0
	switch v.Kind() {
	case reflect.String:
		if here {
			v.SetString(r.word())
		}
	case reflect.Bool:
		if here {
			v.SetBool(r.IntN(2) == 0)
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		if here {
			v.SetInt(int64(r.IntN(3)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "TypeMeta" && f.Name != "ManagedFields" {
				r.fill(v.Field(i), sparse, depth+1)
			}
		}
	case reflect.Pointer:
		switch {
		case here && (depth > 7 || r.IntN(2) == 0):
			v.SetZero()
		case here:
			v.Set(reflect.New(v.Type().Elem()))
			r.fill(v.Elem(), 1, depth+1)
		case !v.IsNil():
			r.fill(v.Elem(), sparse, depth+1)
		}
	case reflect.Slice:
		r.fillSlice(v, sparse, depth, here)
	case reflect.Map:
		r.fillMap(v, sparse, depth, here)
	}
}

func (r random) fillSlice(v reflect.Value, sparse, depth int, here bool) {
	switch {
	case here && (depth > 7 || r.IntN(2) == 0):
		v.SetZero()
	case here:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 4))
		for i := range v.Len() {
			r.fill(v.Index(i), 1, depth+1)
		}
	default:
		v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()+1), v))
		for i := range v.Len() {
			r.fill(v.Index(i), sparse, depth+1)
		}
	}
}

func (r random) fillMap(v reflect.Value, sparse, depth int, here bool) {
	if !here || depth > 7 || v.Type().Key().Kind() != reflect.String {
		return
	}
	if r.IntN(3) == 0 {
		v.SetZero()
		return
	}
	out := reflect.MakeMap(v.Type())
	for range r.IntN(3) {
		value := reflect.New(v.Type().Elem()).Elem()
		r.fill(value, 1, depth+1)
		out.SetMapIndex(reflect.ValueOf(r.word()).Convert(v.Type().Key()), value)
	}
	if v.Len() > 0 && sparse > 1 {
		for i := v.MapRange(); i.Next(); {
			if r.IntN(2) == 0 {
				out.SetMapIndex(i.Key(), i.Value())
			}
		}
	}
	v.Set(out)
}

// entriesOf returns an object's entries, without the order and the seconds, which depend on the clock.
func entriesOf(t *testing.T, obj runtime.Object) []string {
	t.Helper()
	access, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range access.GetManagedFields() {
		out = append(out, fmt.Sprintf("%s %s %s %s %t %s", e.Manager, e.Operation, e.APIVersion, e.Subresource,
			e.Time != nil, raw(e.FieldsV1)))
	}
	slices.Sort(out)
	return out
}

// stored returns the rows of all kinds that are stored.
func stored() iter.Seq[*resources.Row] {
	return func(yield func(*resources.Row) bool) {
		every := rows.All()
		for i := range every {
			if !every[i].NotStored && !yield(&every[i]) {
				return
			}
		}
	}
}

// concernsReset reports whether the library refuses an object for a field that the write resets. The fast path does not
// look at such fields (doc.go).
func concernsReset(refused error, w writeTarget) bool {
	return slices.ContainsFunc(resetFields(w.row, w.subresource), func(path string) bool {
		return strings.Contains(refused.Error(), ": ."+path+".")
	})
}

// On random histories of writes, for every kind, the fast path gives the entries that the library gives.
func TestUpdateFastMatchesLibrary(t *testing.T) {
	t.Parallel()
	const histories, writesEach = 3, 8
	fast, all := 0, 0
	m := newManager(t)
	for row := range stored() {
		for seed := range uint64(histories) {
			r := random{rand.New(rand.NewPCG(seed, 1))}
			var live runtime.Object
			for range writesEach {
				obj, sparse := row.New(), 1
				if live != nil {
					obj, sparse = live.DeepCopyObject(), 1+r.IntN(6)
				}
				r.fill(reflect.ValueOf(obj).Elem(), sparse, 0)
				access, _ := meta.Accessor(obj)
				access.SetUID("u")
				version := row.ServedVersions()[r.IntN(len(row.ServedVersions()))].Name
				by := registry.Writer{Name: []string{"k", "l", "m"}[r.IntN(3)], Version: version,
					Subresource: []string{"", "", "status"}[r.IntN(3)], At: time.Now()}
				w, long := writeTarget{row, by.Version, by.Subresource}, obj.DeepCopyObject()
				refused := m.updateByLibrary(t.Context(), w, by, live, long)
				err := m.updateFast(t.Context(), w, by, live, obj)
				all++
				switch {
				case errors.Is(err, errNeedsLibrary):
				case refused != nil && !concernsReset(refused, w):
					t.Fatalf("%s: the library refuses: %v", row.GVK, refused)
				case err != nil:
					t.Fatalf("%s: %v", row.GVK, err)
				case refused == nil:
					fast++
					if got, want := entriesOf(t, obj), entriesOf(t, long); !slices.Equal(got, want) {
						t.Fatalf("%s, seed %d, written by %+v:\ngot  %q\nwant %q", row.GVK, seed, by, got, want)
					}
				}
				if refused != nil {
					break // such as an element of a keyed list without a key
				}
				live = long
			}
		}
	}
	if fast < all/3 {
		t.Errorf("only %d of %d writes were fast: the test shows little", fast, all)
	}
	t.Logf("%d of %d writes were fast", fast, all)
}
