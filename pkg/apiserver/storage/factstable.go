package storage

import (
	"strings"
	"sync"
)

// FactsTable knows for each resource, by the prefix of its keys, how to read the facts from an encoded object. One
// table is shared by a storage and the cache before it. The zero value is empty and ready; it is safe for concurrent
// use.
type FactsTable struct {
	mu       sync.RWMutex
	byPrefix map[string]FactsFunc
}

// Register says that the keys under prefix ("/registry/pods/") are one resource whose facts f reads. Registering again
// replaces f; items that exist keep their facts.
func (t *FactsTable) Register(prefix string, f FactsFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byPrefix == nil {
		t.byPrefix = map[string]FactsFunc{}
	}
	t.byPrefix[prefix] = f
}

// Unregister forgets a resource.
func (t *FactsTable) Unregister(prefix string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byPrefix, prefix)
}

// Resource returns the longest registered prefix of key (a key or a prefix ending in "/"), or "" and nil if there is
// none.
func (t *FactsTable) Resource(key string) (string, FactsFunc) {
	if t == nil {
		return "", nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for n := strings.LastIndexByte(key, '/') + 1; n > 0; n = strings.LastIndexByte(key[:n-1], '/') + 1 {
		if f, ok := t.byPrefix[key[:n]]; ok {
			return key[:n], f
		}
	}
	return "", nil
}

// Of returns the facts of the value under key: those of d if the writer gave them, else as the resource's function
// reads them, else none.
func (t *FactsTable) Of(key string, d Draft) (Facts, error) {
	if d.Facts != nil {
		return *d.Facts, nil
	}
	_, f := t.Resource(key)
	if f == nil {
		return Facts{}, nil
	}
	facts, err := f(d.Value)
	if err != nil {
		return Facts{}, At("storage: read the facts of", key, err)
	}
	return facts, nil
}
