package kms

import (
	"encoding/binary"
	"testing"
)

// TestRecent: the latest ciphers are there once, and no more than the bound are kept.
func TestRecent(t *testing.T) {
	t.Parallel()
	aead, err := newGCM(make([]byte, sourceSize))
	if err != nil {
		t.Fatal(err)
	}
	info := func(n int) (out [infoSize]byte) {
		binary.BigEndian.PutUint64(out[:], uint64(n))
		return out
	}
	var r recent
	if r.take(info(1)) != nil {
		t.Error("there was a cipher before one was put")
	}
	for n := range 3 * maxRecent {
		r.put(info(n+1), aead)
		if len(r.ciphers) > maxRecent {
			t.Fatalf("%d ciphers are kept", len(r.ciphers))
		}
		if n%3 == 0 && (r.take(info(n+1)) == nil || r.take(info(n+1)) != nil) {
			t.Fatalf("cipher %d is not there once", n+1)
		}
	}
	for n := range 3 * maxRecent {
		if got, want := r.take(info(n+1)) != nil, n >= 2*maxRecent && n%3 != 0; got != want {
			t.Errorf("cipher %d is there: %t", n+1, got)
		}
	}
}
