package fieldmanager

import (
	"sync"
	"time"
)

// cache holds values that are made on first use and dropped after a time without use.
//
// It has no bound in count: its keys are kinds in use, so their number is bounded by what the server serves. A client
// cannot make up keys. Timers start with an entry and end when none is left, so that a Manager needs no goroutine, and
// nobody has to close it.
type cache[K comparable, V any] struct {
	keep time.Duration

	mu      sync.Mutex
	entries map[K]*cacheEntry[V]
	timer   bool // a sweep is due
}

type cacheEntry[V any] struct {
	// once makes others wait without the cache's lock, so compiling one kind does not block writes of other kinds.
	once  sync.Once
	value V
	err   error
	// used is set by every get and cleared by every sweep. A sweep drops entries that are still clear, so an entry
	// lives between one and two periods after its last use.
	used bool
}

func newCache[K comparable, V any](keep time.Duration) *cache[K, V] {
	return &cache[K, V]{keep: keep, entries: map[K]*cacheEntry[V]{}}
}

// get returns the value of key, and makes it if the cache does not have it. Concurrent callers wait for one make, which
// runs without the lock. The cache keeps errors like values.
func (c *cache[K, V]) get(key K, make func() (V, error)) (V, error) {
	c.mu.Lock()
	e := c.entries[key]
	if e == nil {
		e = &cacheEntry[V]{}
		c.entries[key] = e
	}
	e.used = true
	if !c.timer {
		c.timer = true
		time.AfterFunc(c.keep, c.sweep)
	}
	c.mu.Unlock()
	e.once.Do(func() { e.value, e.err = make() })
	return e.value, e.err
}

// sweep drops entries that were not used since the last sweep. It runs again as long as there are any, so an idle cache
// has no timer.
func (c *cache[K, V]) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		// A caller may still hold an entry that is deleted here. It finishes with it; the next one makes another.
		if !e.used {
			delete(c.entries, key)
		}
		e.used = false
	}
	if c.timer = len(c.entries) > 0; c.timer {
		time.AfterFunc(c.keep, c.sweep)
	}
}
