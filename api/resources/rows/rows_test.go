package rows_test

import (
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"bonsai/api/resources"
	"bonsai/api/resources/rows"
	"bonsai/api/scheme"
)

// TestRowsAreWhole checks each row against itself and against the scheme.
func TestRowsAreWhole(t *testing.T) {
	t.Parallel()
	s := scheme.New()
	paths := map[string]bool{}
	for _, row := range rows.All() {
		t.Run(row.GroupResource().String(), func(t *testing.T) {
			if kinds, _, err := s.ObjectKinds(row.New()); err != nil || !slices.Contains(kinds, row.StoredGVK()) {
				t.Errorf("New makes %v (%v), want %v", kinds, err, row.StoredGVK())
			}
			if err := row.CheckVersions(); err != nil {
				t.Error(err)
			}
			for _, v := range row.ServedVersions() {
				want := row.GVK.GroupKind().WithVersion(v.Name)
				if kinds, _, err := s.ObjectKinds(v.New()); err != nil || !slices.Contains(kinds, want) {
					t.Errorf("New of %s makes %v (%v), want %v", v.Name, kinds, err, want)
				}
			}
			if want := strings.ToLower(row.GVK.Kind); row.Singular != want {
				t.Errorf("Singular is %q, want %q", row.Singular, want)
			}
			if row.NotStored {
				return
			}
			list := row.StoredGVK()
			list.Kind += "List"
			if !s.Recognizes(list) {
				t.Errorf("the scheme does not know %v", list) // clients decode lists by it
			}
			if row.StoragePath == "" || row.Stored == nil && paths[row.StoragePath] {
				t.Errorf("StoragePath %q is empty or taken", row.StoragePath)
			}
			paths[row.StoragePath] = true
			obj := row.New()
			if cells := row.Cells(obj, time.Now()); len(cells) != len(row.Columns) {
				t.Errorf("%d cells for %d columns", len(cells), len(row.Columns))
			}
			if row.Fields != nil {
				names := slices.Sorted(maps.Keys(row.Fields(obj)))
				if want := slices.Sorted(slices.Values(row.FieldNames)); !slices.Equal(names, want) {
					t.Errorf("Fields are %v, FieldNames %v", names, want)
				}
			}
		})
	}
}

func TestEventTTL(t *testing.T) {
	t.Parallel()
	for want, o := range map[time.Duration]rows.Options{time.Hour: {}, time.Minute: {EventTTL: time.Minute}} {
		for _, row := range rows.With(o) {
			if row.Resource == "events" && row.TTL != want {
				t.Errorf("%s live %v, want %v", row.GroupResource(), row.TTL, want)
			}
			if row.Resource != "events" && row.TTL != 0 {
				t.Errorf("%s live %v", row.GroupResource(), row.TTL)
			}
		}
	}
}

// TestAnyObject runs every function of every row on random objects: none may panic, and defaults come to rest at once.
func TestAnyObject(t *testing.T) {
	t.Parallel()
	for _, row := range rows.All() {
		t.Run(row.GroupResource().String(), func(t *testing.T) {
			t.Parallel()
			f := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1),
				serializer.NewCodecFactory(scheme.New())).NilChance(0.3).NumElements(1, 3)
			if row.Resource == "customresourcedefinitions" {
				f = f.MaxDepth(14) // a schema holds schemas, which without a bound never end
			}
			for range 60 {
				v := row.ServedVersions()[0]
				obj, old := toHub(t, v, v.New(), f.Fill), toHub(t, v, v.New(), f.Fill)
				s := row.Strategy
				if s.Default != nil {
					s.Default(obj)
					once := obj.DeepCopyObject()
					s.Default(obj)
					if !apiequality.Semantic.DeepEqual(once, obj) {
						t.Fatalf("defaults change a second time")
					}
				}
				for name, f := range functions(s) {
					exercise(t, name, f, obj.DeepCopyObject(), old.DeepCopyObject())
				}
				for _, sub := range row.Subresources {
					if sub.Strategy != nil {
						for name, f := range functions(*sub.Strategy) {
							exercise(t, sub.Name+" "+name, f, obj.DeepCopyObject(), old.DeepCopyObject())
						}
					}
				}
				if row.Cells != nil {
					row.Cells(obj, time.Now())
				}
				if row.Fields != nil {
					row.Fields(obj)
				}
			}
		})
	}
}

// functions returns a strategy's functions that take one or two objects, by name.
func functions(s any) map[string]reflect.Value {
	v := reflect.ValueOf(s)
	all := map[string]reflect.Value{}
	object := reflect.TypeFor[runtime.Object]()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() != reflect.Func || f.IsNil() || f.Type().NumIn() == 0 || f.Type().In(0) != object {
			continue
		}
		if f.Type().NumIn() == 1 || f.Type().In(1) == object {
			all[v.Type().Field(i).Name] = f
		}
	}
	return all
}

func exercise(t *testing.T, name string, f reflect.Value, obj, old runtime.Object) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("%s panics: %v", name, p)
		}
	}()
	in := []reflect.Value{reflect.ValueOf(&obj).Elem()}
	if f.Type().NumIn() == 2 {
		in = append(in, reflect.ValueOf(&old).Elem())
	}
	f.Call(in)
}

// toHub fills an object of a version and converts it to the stored kind.
func toHub(t *testing.T, v resources.Version, obj runtime.Object, fill func(any)) runtime.Object {
	t.Helper()
	fill(obj)
	if v.ToHub == nil {
		return obj
	}
	hub, err := v.ToHub(t.Context(), obj)
	if err != nil {
		t.Fatal(err)
	}
	return hub
}
