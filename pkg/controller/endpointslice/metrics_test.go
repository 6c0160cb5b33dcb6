package endpointslice

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"bonsai/pkg/controller/backends"
)

// TestTally: what is added and taken away is told by the pods, no matter which slice they are in.
func TestTally(t *testing.T) {
	t.Parallel()
	endpoints := func(names ...string) (out []discoveryv1.Endpoint) {
		for _, n := range names {
			out = append(out, discoveryv1.Endpoint{Addresses: []string{n}})
		}
		return out
	}
	slice := func(names ...string) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{Endpoints: endpoints(names...)}
	}
	var all tally
	have := []*discoveryv1.EndpointSlice{slice("a", "b"), slice("c")}
	all.add(map[string]*portGroup{"": {endpoints: endpoints("b", "c", "d")}}, have,
		changes{update: have[:1], remove: have[1:]}, 2)
	if want := (tally{size: backends.Size{Slices: 1, Ideal: 2, Endpoints: 3}, added: 1, removed: 1,
		writes: 2}); all != want {
		t.Errorf("%+v, want %+v", all, want)
	}
	all = tally{}
	all.add(nil, nil, changes{create: have[:1]}, 2) // a Service without endpoints
	if want := (tally{size: backends.Size{Slices: 1, Ideal: 1}, writes: 1}); all != want {
		t.Errorf("%+v, want %+v", all, want)
	}
}
