package authn

import (
	"container/list"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"
	"time"

	"bonsai/pkg/apiserver/request"
)

// maxCacheBytes bounds the memory of the answers of one kind that a cache holds: others say how long names, groups and
// extras are.
const maxCacheBytes = 64 << 20

// Cache returns a TokenAuthenticator that remembers for ttl (upstream: 10 s) what t said of at most size tokens that t
// knows; the least recently used one makes room. It never holds a token, only a keyed hash. Refusals are not
// remembered: a token becomes good as soon as what it is bound to is there, and nobody fills the cache with tokens he
// made up. A nil m counts nothing.
func Cache(t TokenAuthenticator, ttl time.Duration, size int, m *CacheMetrics) TokenAuthenticator {
	return newCache(t, ttl, size, m)
}

// CacheRefusals is Cache for a t that is slow: it also remembers for ttl that t does not know a token. Unknown tokens
// have room of their own, so that made-up ones push no good one out. Errors are not remembered.
func CacheRefusals(t TokenAuthenticator, ttl time.Duration, size int, m *CacheMetrics) TokenAuthenticator {
	c := newCache(t, ttl, size, m)
	c.refused = newEntries(size)
	return c
}

func newCache(t TokenAuthenticator, ttl time.Duration, size int, m *CacheMetrics) *cache {
	c := &cache{tokens: t, ttl: ttl, now: time.Now, known: newEntries(size), metrics: m}
	rand.Read(c.secret[:])
	return c
}

type cacheKey [sha256.Size]byte

// cache is a TokenAuthenticator. Requests use it from their own goroutines. No lock is held during AuthenticateToken,
// which may ask the store. So two requests with the same new token may both ask; the second put replaces the first.
type cache struct {
	tokens TokenAuthenticator
	ttl    time.Duration
	now    func() time.Time
	secret [32]byte
	// known and refused are the answers; refused is nil if refusals are not remembered.
	known, refused *entries
	metrics        *CacheMetrics
}

// entries are answers. The least recently used one makes room.
type entries struct {
	size int

	mu      sync.Mutex
	entries map[cacheKey]*list.Element
	order   *list.List // of *cacheEntry, the most recently used first
	bytes   int        // of all entries, about
}

// cacheEntry is the result for one token and its audiences. user is shared by all requests that hit the entry. They
// must not change it.
type cacheEntry struct {
	key       cacheKey
	until     time.Time
	user      *request.User
	audiences []string
}

// AuthenticateToken implements TokenAuthenticator. A revoked token, or one whose pod is deleted, stays good until the
// entry expires: ttl is the upper bound of that delay.
func (c *cache) AuthenticateToken(ctx context.Context, token string, audiences []string) (*request.User, []string,
	error) {
	k, now := c.key(token, audiences), c.now()
	if e := c.known.get(k, now); e != nil {
		c.metrics.hit(c.now().Sub(now))
		return e.user, e.audiences, nil
	}
	if c.refused != nil && c.refused.get(k, now) != nil {
		c.metrics.hit(c.now().Sub(now))
		return nil, nil, nil
	}
	done := c.metrics.fetch()
	user, auds, err := c.tokens.AuthenticateToken(ctx, token, audiences)
	end := c.now()
	done(user != nil || err != nil || c.refused != nil, err, end.Sub(now))
	e := &cacheEntry{key: k, until: end.Add(c.ttl), user: user, audiences: auds}
	switch {
	case err != nil:
	case user != nil:
		c.known.put(e)
	case c.refused != nil:
		c.refused.put(e)
	}
	return user, auds, err
}

// key hashes the token and the audiences, each with its length before it so that no two questions hash alike. The
// secret is drawn when the process starts. Without it, whoever reads the memory of the server could look tokens up by
// their plain hash.
func (c *cache) key(token string, audiences []string) (k cacheKey) {
	h := hmac.New(sha256.New, c.secret[:])
	writeCounted(h, token)
	for _, a := range audiences {
		writeCounted(h, a)
	}
	h.Sum(k[:0])
	return k
}

func writeCounted(h hash.Hash, s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	h.Write(n[:])
	h.Write([]byte(s))
}

func newEntries(size int) *entries {
	return &entries{size: size, entries: map[cacheKey]*list.Element{}, order: list.New()}
}

// get returns the entry of a key, nil if there is none that holds. An expired entry leaves the cache when somebody asks
// for it, or when it is the least recently used one. No goroutine sweeps: size and maxCacheBytes bound the memory.
func (s *entries) get(k cacheKey, now time.Time) *cacheEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	el, ok := s.entries[k]
	if !ok {
		return nil
	}
	e := el.Value.(*cacheEntry)
	if !now.Before(e.until) {
		s.removeLocked(el)
		return nil
	}
	s.order.MoveToFront(el)
	return e
}

func (s *entries) put(e *cacheEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.entries[e.key]; ok {
		s.removeLocked(old)
	}
	s.entries[e.key] = s.order.PushFront(e)
	s.bytes += e.bytes()
	for s.order.Len() > s.size || s.bytes > maxCacheBytes {
		s.removeLocked(s.order.Back())
	}
}

func (s *entries) removeLocked(el *list.Element) {
	e := s.order.Remove(el).(*cacheEntry)
	s.bytes -= e.bytes()
	delete(s.entries, e.key)
}

// bytes is about the memory of an entry. Requests do not change its user, so that it stays the same.
func (e *cacheEntry) bytes() int {
	const entry, text = 256, 32 // beside their texts
	n := entry
	add := func(all ...string) {
		for _, s := range all {
			n += text + len(s)
		}
	}
	add(e.audiences...)
	if u := e.user; u != nil {
		add(u.Name, u.UID)
		add(u.Groups...)
		for k, values := range u.Extra {
			add(k)
			add(values...)
		}
	}
	return n
}
