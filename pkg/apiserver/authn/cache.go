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

// Cache returns a TokenAuthenticator that remembers for ttl (upstream: 10 s) what t said of at most size tokens that t
// knows; the least recently used one makes room. It never holds a token, only a keyed hash. Refusals are not
// remembered: a token becomes good as soon as what it is bound to is there, and nobody fills the cache with tokens he
// made up.
func Cache(t TokenAuthenticator, ttl time.Duration, size int) TokenAuthenticator {
	c := &cache{tokens: t, ttl: ttl, size: size, now: time.Now, entries: map[cacheKey]*list.Element{},
		order: list.New()}
	rand.Read(c.secret[:])
	return c
}

type cacheKey [sha256.Size]byte

// cache is a TokenAuthenticator. Requests use it from their own goroutines. mu is never held during AuthenticateToken,
// which may ask the store. So two requests with the same new token may both ask; the second put replaces the first.
type cache struct {
	tokens TokenAuthenticator
	ttl    time.Duration
	size   int
	now    func() time.Time
	secret [32]byte

	mu      sync.Mutex
	entries map[cacheKey]*list.Element
	order   *list.List // of *cacheEntry, the most recently used first
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
	k := c.key(token, audiences)
	if e := c.get(k); e != nil {
		return e.user, e.audiences, nil
	}
	user, auds, err := c.tokens.AuthenticateToken(ctx, token, audiences)
	if user != nil && err == nil {
		c.put(&cacheEntry{key: k, until: c.now().Add(c.ttl), user: user, audiences: auds})
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

// get returns the entry of a key, nil if there is none that holds. An expired entry leaves the cache when somebody asks
// for it, or when it is the least recently used one. No goroutine sweeps: size bounds the memory.
func (c *cache) get(k cacheKey) *cacheEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	el, ok := c.entries[k]
	if !ok {
		return nil
	}
	e := el.Value.(*cacheEntry)
	if !c.now().Before(e.until) {
		c.removeLocked(el)
		return nil
	}
	c.order.MoveToFront(el)
	return e
}

func (c *cache) put(e *cacheEntry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.entries[e.key]; ok {
		c.removeLocked(old)
	}
	c.entries[e.key] = c.order.PushFront(e)
	for c.order.Len() > c.size {
		c.removeLocked(c.order.Back())
	}
}

func (c *cache) removeLocked(el *list.Element) {
	delete(c.entries, c.order.Remove(el).(*cacheEntry).key)
}
