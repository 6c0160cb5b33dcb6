package kms

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	sourceSize = 32 // bytes of a seed, and of a key
	infoSize   = 32
	nonceSize  = 12

	// maxSources bounds the sources that are kept opened. Each API server makes one when it starts and one for each key
	// of the KMS, so there are few.
	maxSources = 1000
	// keepSource is how long a source is kept after its last use, and keepFailure how long a failure stands for the
	// next ones: a list of a thousand objects of one source must not wait for a plug-in a thousand times.
	keepSource  = time.Hour
	keepFailure = time.Second
)

// sourceID identifies an encrypted source.
type sourceID [sha256.Size]byte

// id sums up what a plug-in is asked.
func (o *object) id() sourceID {
	h := sha256.New()
	add := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	add([]byte{byte(o.sourceType)})
	add(o.source)
	add([]byte(o.keyID))
	for _, name := range slices.Sorted(maps.Keys(o.annotations)) {
		add([]byte(name))
		add(o.annotations[name])
	}
	return sourceID(h.Sum(nil))
}

// source is an opened source: a seed, or a key.
type source struct {
	seed   []byte      // of sourceSeed
	recent recent      // of sourceSeed
	aead   cipher.AEAD // of sourceKey
	// proven reports that it is the right one: this server has made it, or it has opened a value.
	proven atomic.Bool
}

// newSource makes the source of what a plug-in has decrypted.
func newSource(t sourceType, plain []byte) (*source, error) {
	if len(plain) != sourceSize {
		return nil, fmt.Errorf("invalid DEK source length, want %d bytes, got %d", sourceSize, len(plain))
	}
	if t == sourceSeed {
		return &source{seed: slices.Clone(plain)}, nil
	}
	aead, err := newGCM(plain)
	if err != nil {
		return nil, err
	}
	return &source{aead: aead}, nil
}

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// derive returns the cipher of a seed's key for info.
func (s *source) derive(info []byte) (cipher.AEAD, error) {
	key, err := hkdf.Expand(sha256.New, s.seed, string(info), sourceSize)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	return newGCM(key)
}

var errShort = errors.New("the stored data was shorter than the required size")

// open decrypts an object's data, with path authenticated.
func (s *source) open(path, data []byte) ([]byte, error) {
	aead := s.aead
	if s.seed != nil {
		if len(data) < infoSize {
			return nil, errShort
		}
		if aead = s.recent.take([infoSize]byte(data)); aead == nil {
			var err error
			if aead, err = s.derive(data[:infoSize]); err != nil {
				return nil, err
			}
		}
		data = data[infoSize:]
	}
	if len(data) < nonceSize {
		return nil, errShort
	}
	return aead.Open(nil, data[:nonceSize], data[nonceSize:], path)
}

// sources are the opened sources, and the latest failures.
type sources struct {
	now   func() time.Time
	tasks sync.WaitGroup // calls under way

	mu   sync.Mutex // not held while a plug-in is asked
	kept map[sourceID]*keptSource
}

// keptSource is one source that is being opened, is opened, or could not be.
type keptSource struct {
	done   chan struct{} // closed when source and err are set
	source *source
	err    error
	until  time.Time // guarded by sources.mu; zero while it is being opened
}

// has reports whether the source is there.
func (s *sources) has(id sourceID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[id]
	return k != nil && !k.until.IsZero() && k.err == nil && s.now().Before(k.until)
}

// put adds a source that this server has made.
func (s *sources) put(id sourceID, src *source) {
	src.proven.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	done := make(chan struct{})
	close(done)
	s.addLocked(id, &keptSource{done: done, source: src, until: s.now().Add(keepSource)})
}

// get returns a source, which open opens if it is not there. Callers that ask for one at the same time share one call,
// which the first one's ctx does not end: the others wait for it, too.
func (s *sources) get(ctx context.Context, id sourceID, open func(context.Context) (*source, error)) (*source, error) {
	s.mu.Lock()
	k := s.kept[id]
	if k != nil && !k.until.IsZero() && !s.now().Before(k.until) {
		k = nil
	}
	if k == nil {
		k = &keptSource{done: make(chan struct{})}
		s.addLocked(id, k)
		s.tasks.Go(func() { s.fill(context.WithoutCancel(ctx), k, open) })
	} else if k.source != nil && !k.until.IsZero() && k.source.proven.Load() {
		k.until = s.now().Add(keepSource)
	}
	s.mu.Unlock()
	select {
	case <-k.done:
		return k.source, k.err
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the KMS plug-in: %w", ctx.Err())
	}
}

// fill opens k's source.
func (s *sources) fill(ctx context.Context, k *keptSource, open func(context.Context) (*source, error)) {
	src, err := open(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	k.source, k.err, k.until = src, err, s.now().Add(keepSource)
	if err != nil {
		k.until = s.now().Add(keepFailure)
	}
	close(k.done)
}

// opened notes whether src, the source of id, has opened a value. One that never has may be another key's: the plug-in
// is asked again soon.
func (s *sources) opened(id func() sourceID, src *source, err error) {
	if src.proven.Load() {
		return
	}
	if err == nil {
		src.proven.Store(true)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.kept[id()]; k != nil && k.source == src {
		if soon := s.now().Add(keepFailure); soon.Before(k.until) {
			k.until = soon
		}
	}
}

// addLocked adds k. Beyond the bound it drops what is over, and if nothing is, the one that was used longest ago. One
// that is being opened goes last: callers of the same source would ask the plug-in again. s.mu is held.
func (s *sources) addLocked(id sourceID, k *keptSource) {
	if len(s.kept) >= maxSources {
		now := s.now()
		maps.DeleteFunc(s.kept, func(_ sourceID, k *keptSource) bool { return !k.until.IsZero() && now.After(k.until) })
	}
	for len(s.kept) >= maxSources {
		var oldest sourceID
		var first *keptSource
		for id, k := range s.kept {
			older := first == nil || k.until.Before(first.until)
			if first != nil && k.until.IsZero() != first.until.IsZero() {
				older = first.until.IsZero()
			}
			if older {
				oldest, first = id, k
			}
		}
		delete(s.kept, oldest)
	}
	s.kept[id] = k
}

// size is how many sources there are.
func (s *sources) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept)
}
