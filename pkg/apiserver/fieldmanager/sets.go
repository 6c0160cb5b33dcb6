package fieldmanager

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Bounds of the cache of field sets: a set takes some ten times as much as the bytes it was read from.
const (
	maxSets   = 128
	maxCached = 8 << 10 // bytes
)

// sets reads field sets, those of the same bytes once: objects that were made alike have the same. Its sets are shared and must not
// be changed. Two generations are kept: what was used since the last change of generation, and what was used before; the
// change comes when the first is full, or after a time.
type sets struct {
	keep time.Duration

	mu       sync.Mutex
	now, old map[string]*fieldpath.Set
	timer    bool
}

func newSets(keep time.Duration) *sets {
	return &sets{keep: keep, now: map[string]*fieldpath.Set{}}
}

// of returns the set of an entry.
func (s *sets) of(e *metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
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

// encode returns the bytes of a set, which it will not need to read.
func (s *sets) encode(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	raw, err := set.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("write fields: %w", err)
	}
	s.add(raw, set)
	f := &metav1.FieldsV1{}
	f.SetRawBytes(raw)
	return f, nil
}

func (s *sets) cached(raw []byte) *fieldpath.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set := s.now[string(raw)]; set != nil {
		return set
	}
	set := s.old[string(raw)]
	if set != nil {
		s.put(string(raw), set)
	}
	return set
}

func (s *sets) add(raw []byte, set *fieldpath.Set) {
	if len(raw) > maxCached {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(string(raw), set)
}

// put needs the lock.
func (s *sets) put(raw string, set *fieldpath.Set) {
	if len(s.now) >= maxSets {
		s.turn()
	}
	s.now[raw] = set
	if !s.timer {
		s.timer = true
		time.AfterFunc(s.keep, s.sweep)
	}
}

func (s *sets) turn() { s.old, s.now = s.now, map[string]*fieldpath.Set{} }

func (s *sets) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn()
	if s.timer = len(s.old) > 0; s.timer {
		time.AfterFunc(s.keep, s.sweep)
	}
}
