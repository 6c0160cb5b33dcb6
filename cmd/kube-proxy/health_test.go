package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestHealth: not before the first rules, not while failures last or a round hangs, and /healthz (not /livez) not on a node that is being deleted.
func TestHealth(t *testing.T) {
	t.Parallel()
	now, leaving := time.Unix(1000, 0), false
	h := newHealth(modeNFTables, 10*time.Second, func() bool { return leaving }, func() time.Time { return now })
	expect := func(step string, healthz, livez int) {
		t.Helper()
		for path, want := range map[string]int{"/healthz": healthz, "/livez": livez} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			if w.Code != want {
				t.Errorf("%s: %s answers %d, want %d: %s", step, path, w.Code, want, w.Body)
			}
		}
	}
	expect("start", 503, 503)
	h.begin()
	h.done(time.Millisecond, 0, nil)
	expect("written", 200, 200)
	h.begin()
	h.done(time.Millisecond, 0, errors.New("no"))
	expect("one failure", 200, 200)
	now = now.Add(21 * time.Second)
	h.begin()
	expect("failing for long", 503, 503)
	h.done(time.Millisecond, 0, nil)
	expect("repaired", 200, 200)
	h.begin()
	h.done(time.Millisecond, 1, nil)
	now = now.Add(21 * time.Second)
	expect("a service was refused", 200, 200)
	h.begin()
	now = now.Add(21 * time.Second)
	expect("a round that does not end", 503, 503)
	h.done(time.Millisecond, 0, nil)
	expect("it ended", 200, 200)
	leaving = true
	expect("leaving", 503, 200)
}
