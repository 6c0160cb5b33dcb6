package fieldmanager

import (
	"sync"
	"time"
)

// kept are values that are made when they are first asked for, and dropped when nobody asked for a while.
type kept[K comparable, V any] struct {
	keep time.Duration

	mu     sync.Mutex
	values map[K]*keptValue[V]
	timer  bool // a sweep is due
}

type keptValue[V any] struct {
	once  sync.Once
	value V
	err   error
	// used is set by every get, and cleared by every sweep, which drops what is clear already.
	used bool
}

func newKept[K comparable, V any](keep time.Duration) *kept[K, V] {
	return &kept[K, V]{keep: keep, values: map[K]*keptValue[V]{}}
}

// get returns the value of key, made by make if it is not kept. Those who ask while it is made wait for it; an error is kept like
// a value.
func (k *kept[K, V]) get(key K, make func() (V, error)) (V, error) {
	k.mu.Lock()
	v := k.values[key]
	if v == nil {
		v = &keptValue[V]{}
		k.values[key] = v
	}
	v.used = true
	if !k.timer {
		k.timer = true
		time.AfterFunc(k.keep, k.sweep)
	}
	k.mu.Unlock()
	v.once.Do(func() { v.value, v.err = make() })
	return v.value, v.err
}

// sweep drops what was not used since the last one, and comes again as long as there is anything.
func (k *kept[K, V]) sweep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, v := range k.values {
		if !v.used {
			delete(k.values, key)
		}
		v.used = false
	}
	if k.timer = len(k.values) > 0; k.timer {
		time.AfterFunc(k.keep, k.sweep)
	}
}
