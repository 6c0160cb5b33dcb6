package fieldmanager

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Bounds of a setCache. A set takes about ten times as much memory as its JSON.
const (
	// maxSets is how many sets one generation has.
	maxSets = 128
	// maxSetBytes is the length of the JSON of the largest set that is cached.
	maxSetBytes = 8 << 10
)

// setCache parses field sets, and keeps them by their JSON: objects that were made alike have the same. Its sets are
// shared and must not be changed.
//
// It approximates least recently used by two generations. A set that is used moves to the young one. When that is full,
// or after a time, it becomes the old one, and the previous old one is dropped.
//
// The bounds together limit it to 2 generations × 128 sets × 8 KiB of JSON × 10, which is about 20 MiB, however many
// objects exist. Pods of one ReplicaSet, for example, share their sets.
type setCache struct {
	keep time.Duration

	mu         sync.Mutex
	young, old map[string]*fieldpath.Set
	timer      bool // a sweep is due
}

func newSetCache(keep time.Duration) *setCache {
	return &setCache{keep: keep, young: map[string]*fieldpath.Set{}}
}

// of returns the fields of an entry, an empty set if it has none.
//
// Two goroutines may parse the same set at the same time. Both results are equal, and the later one stays.
func (s *setCache) of(e *metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	raw := raw(e.FieldsV1)
	if len(raw) == 0 {
		return fieldpath.NewSet(), nil
	}
	if set := s.cached(raw); set != nil {
		return set, nil
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(raw)); err != nil {
		return nil, fmt.Errorf("read the fields of %s: %w", e.Manager, err)
	}
	s.add(raw, set)
	return set, nil
}

// encode returns the JSON of a set, and caches the set: the next write of the object parses it.
func (s *setCache) encode(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	raw, err := set.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("write fields: %w", err)
	}
	s.add(raw, set)
	f := &metav1.FieldsV1{}
	f.SetRawBytes(raw)
	return f, nil
}

func (s *setCache) cached(raw []byte) *fieldpath.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set := s.young[string(raw)]; set != nil {
		return set
	}
	set := s.old[string(raw)]
	if set != nil {
		s.put(string(raw), set)
	}
	return set
}

func (s *setCache) add(raw []byte, set *fieldpath.Set) {
	// A large set is parsed for each write instead. One object with a huge list would otherwise displace the sets of
	// many small ones in memory.
	if len(raw) > maxSetBytes {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(string(raw), set)
}

// put adds a set to the young generation. The caller holds the lock.
func (s *setCache) put(raw string, set *fieldpath.Set) {
	if len(s.young) >= maxSets {
		s.turn()
	}
	s.young[raw] = set
	if !s.timer {
		s.timer = true
		time.AfterFunc(s.keep, s.sweep)
	}
}

// turn makes the young generation the old one. The caller holds the lock. The old map is not changed afterwards; a used
// set is also put into the young one.
func (s *setCache) turn() { s.old, s.young = s.young, map[string]*fieldpath.Set{} }

// sweep ages both generations. It runs again as long as there are any sets.
func (s *setCache) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn()
	if s.timer = len(s.old) > 0; s.timer {
		time.AfterFunc(s.keep, s.sweep)
	}
}
