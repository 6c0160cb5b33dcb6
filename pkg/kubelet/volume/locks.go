package volume

import "sync"

// Locks are locks by key. A lock exists only while it is held or waited for, so the map does not grow with the keys
// ever used. The zero value is ready.
type Locks[K comparable] struct {
	mu    sync.Mutex
	locks map[K]*countedLock
}

// countedLock is removed by its last user.
type countedLock struct {
	sync.Mutex
	users int
}

// Hold locks a key until the function that it returns is called.
func (l *Locks[K]) Hold(key K) (release func()) {
	l.mu.Lock()
	one := l.locks[key]
	if one == nil {
		if l.locks == nil {
			l.locks = map[K]*countedLock{}
		}
		one = &countedLock{}
		l.locks[key] = one
	}
	one.users++
	l.mu.Unlock()
	one.Lock()
	return func() {
		one.Unlock()
		l.mu.Lock()
		if one.users--; one.users == 0 {
			delete(l.locks, key)
		}
		l.mu.Unlock()
	}
}
