// Package discovery tells clients what the API server serves: the old documents (/api, /apis, /api/v1, /apis/G,
// /apis/G/V) and the aggregated one that replaces them all (apidiscovery.k8s.io/v2). The documents are made once for
// each state of the catalog and of the APIServices, when somebody asks, and served as bytes.
package discovery

import (
	"fmt"
	"sync"
	"sync/atomic"

	"bonsai/api/resources"
	"bonsai/pkg/apiserver/catalog"
)

// Config is what discovery is made from.
type Config struct {
	Catalog *catalog.Catalog
	// Registered returns all APIServices, and a generation that differs whenever they differ. nil: there are none.
	// It is called for every request, so the list itself is behind a function.
	Registered func() (generation uint64, all func() []Registered)
	// ServerAddress is host:port for /api's serverAddressByClientCIDRs.
	ServerAddress string
}

// Discovery serves the documents. It is safe for concurrent use.
type Discovery struct {
	cfg  Config
	mu   sync.Mutex                // held while documents are made, so that concurrent requests make them once
	docs atomic.Pointer[documents] // the documents made last, perhaps of an older state; nil before the first request
}

// New returns the discovery of what cfg.Catalog serves. It makes no document yet.
func New(cfg Config) *Discovery {
	if cfg.Registered == nil {
		cfg.Registered = func() (uint64, func() []Registered) { return 0, func() []Registered { return nil } }
	}
	return &Discovery{cfg: cfg}
}

// state names what documents are made of, by the generations of its parts. Documents of an equal state are current.
type state struct{ catalog, registered uint64 }

// documents returns the current documents, and makes them first if the state has changed since they were made. After an
// error the next request tries again. The state is read again under mu, because the request that held mu before may
// have made what is missing. The generation is read with the parts that it counts: a state read separately could be
// newer than the documents, which would then stay.
func (d *Discovery) documents() (*documents, error) {
	if docs := d.docs.Load(); docs != nil && docs.of == d.state() {
		return docs, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	served := d.cfg.Catalog.Snapshot()
	generation, registered := d.cfg.Registered()
	of := state{served.Generation(), generation}
	if docs := d.docs.Load(); docs != nil && docs.of == of {
		return docs, nil
	}
	docs, err := build(groupsOf(served, registered()), d.cfg.ServerAddress)
	if err != nil {
		return nil, fmt.Errorf("making the discovery documents: %w", err)
	}
	docs.of = of
	d.docs.Store(docs)
	return docs, nil
}

// state returns the current state without making anything, so it is cheap enough for every request.
func (d *Discovery) state() state {
	generation, _ := d.cfg.Registered()
	return state{d.cfg.Catalog.Snapshot().Generation(), generation}
}

// verbs returns the verbs of a row's main resource, in the order of upstream's discovery.
func verbs(r *resources.Row) []string {
	switch {
	case r.Observed:
		return []string{"get", "list"}
	case r.NotStored:
		return []string{"create"}
	case r.Ending != "":
		return []string{"delete", "deletecollection", "get", "list", "watch"}
	case r.NoDeleteCollection:
		return []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	}
	if r.Dynamic() {
		return []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
	}
	return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}
