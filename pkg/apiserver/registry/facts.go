package registry

import (
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/storage"
)

// factReader reads the facts of one kind's objects.
type factReader struct {
	fields func(runtime.Object) fields.Set // beyond name and namespace; may be nil
	// sorted: of all fields met so far, so that the facts of a kind share one list
	names atomic.Pointer[[]string]
}

// of returns the facts of obj.
func (r *factReader) of(obj runtime.Object, access metav1.Object) storage.Facts {
	var values fields.Set
	if r.fields != nil {
		values = r.fields(obj)
	}
	if values == nil {
		values = make(fields.Set, 2)
	}
	values["metadata.name"] = access.GetName()
	if ns := access.GetNamespace(); ns != "" {
		values["metadata.namespace"] = ns
	}
	return storage.NewFacts(r.namesOf(values), access.GetLabels(), values)
}

// namesOf returns the list of names that has all of values.
func (r *factReader) namesOf(values fields.Set) *[]string {
	for {
		known := r.names.Load()
		var names []string
		if known != nil {
			names = *known
		}
		all := names
		for n := range values {
			if i, ok := slices.BinarySearch(all, n); !ok {
				all = slices.Insert(slices.Clip(all), i, n)
			}
		}
		if len(all) == len(names) {
			return known
		}
		if r.names.CompareAndSwap(known, &all) {
			return &all
		}
	}
}
