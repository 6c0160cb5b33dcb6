package delegated

import (
	"crypto/sha256"
	"time"

	"k8s.io/utils/lru"
)

// memorySize is how many answers of the API server are remembered at most, of each kind.
const memorySize = 4096

// memory remembers answers for some time. Keys are kept as their SHA-256: they may be secret or long.
type memory[T any] struct {
	now   func() time.Time
	cache *lru.Cache // [sha256.Size]byte -> remembered[T]
}

// remembered is an answer and until when it holds.
type remembered[T any] struct {
	answer T
	until  time.Time
}

func newMemory[T any](now func() time.Time) memory[T] {
	return memory[T]{now: now, cache: lru.New(memorySize)}
}

func (m memory[T]) get(key []byte) (answer T, ok bool) {
	if v, found := m.cache.Get(sha256.Sum256(key)); found {
		if got := v.(remembered[T]); m.now().Before(got.until) {
			return got.answer, true
		}
	}
	return answer, false
}

func (m memory[T]) put(key []byte, answer T, ttl time.Duration) {
	m.cache.Add(sha256.Sum256(key), remembered[T]{answer, m.now().Add(ttl)})
}
