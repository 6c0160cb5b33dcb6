package storage

// Fingerprint sums up which keys exist at which revisions, so that a cache can be compared with the storage behind it
// without moving values. Keys are added in order. The zero value is that of no keys. It finds accidents, not attacks:
// the hash is no cryptographic one.
type Fingerprint struct {
	Count int64
	Hash  uint64
}

// Add takes in one key and the revision of its item (FNV-1a, 64 bits, over the key and the revision's bytes).
func (f *Fingerprint) Add(key string, revision int64) {
	const offset, prime = 14695981039346656037, 1099511628211
	h := f.Hash
	if f.Count == 0 {
		h = offset
	}
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * prime
	}
	for shift := 0; shift < 64; shift += 8 {
		h = (h ^ uint64(byte(revision>>shift))) * prime
	}
	f.Count, f.Hash = f.Count+1, h
}
