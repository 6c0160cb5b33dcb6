package rows

import (
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/api/podspec"
	"bonsai/api/resources"
)

// dropDisabled adds to what prepares a kind's objects that their pods have no fields of features that are off by
// default.
func dropDisabled(row *resources.Row) {
	if _, path := podSpec(row.New()); path == nil {
		return
	}
	drop := func(obj, old runtime.Object) {
		spec, _ := podSpec(obj)
		was, _ := podSpec(old)
		if spec != nil {
			podspec.DropDisabled(spec, was)
		}
	}
	s := &row.Strategy
	create := s.PrepareCreate
	s.PrepareCreate = func(obj runtime.Object) {
		drop(obj, nil)
		if create != nil {
			create(obj)
		}
	}
	s.PrepareUpdate = before(drop, s.PrepareUpdate)
	for i := range row.Subresources {
		if sub := row.Subresources[i].Strategy; sub != nil {
			sub.PrepareUpdate = before(drop, sub.PrepareUpdate)
		}
	}
}

// before is a function that does both, in this order; then may be nil.
func before(first, then func(obj, old runtime.Object)) func(obj, old runtime.Object) {
	return func(obj, old runtime.Object) {
		first(obj, old)
		if then != nil {
			then(obj, old)
		}
	}
}
