package kms

import (
	"crypto/cipher"
	"sync"
)

// maxRecent bounds the ciphers of a seed that are kept, each of about a kilobyte.
const maxRecent = 128

// recent keeps the ciphers that values were written by a moment ago. The watch brings each value back soon, and a
// cipher's derivation is the dearest part of opening one. A cipher depends on the seed and the info alone, so whoever
// has the info may have it.
type recent struct {
	mu      sync.Mutex
	ciphers map[[infoSize]byte]cipher.AEAD
	// order has the infos of the latest maxRecent ciphers, from next on the oldest first.
	order [maxRecent][infoSize]byte
	next  int
}

// put keeps a cipher in the place of the oldest.
func (r *recent) put(info [infoSize]byte, aead cipher.AEAD) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ciphers == nil {
		r.ciphers = make(map[[infoSize]byte]cipher.AEAD, maxRecent)
	}
	delete(r.ciphers, r.order[r.next])
	r.order[r.next], r.ciphers[info] = info, aead
	r.next = (r.next + 1) % maxRecent
}

// take returns the cipher of info and forgets it; nil if it has none.
func (r *recent) take(info [infoSize]byte) cipher.AEAD {
	r.mu.Lock()
	defer r.mu.Unlock()
	aead := r.ciphers[info]
	delete(r.ciphers, info)
	return aead
}
