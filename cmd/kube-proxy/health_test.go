package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestHealth: not before the first rules, not while failures last, and /healthz (not /livez) not on a node that is being deleted.
func TestHealth(t *testing.T) {
	t.Parallel()
	now, leaving := time.Unix(1000, 0), false
	h := newHealth(10*time.Second, func() bool { return leaving }, func() time.Time { return now })
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
	h.done(time.Millisecond, nil)
	expect("written", 200, 200)
	h.done(time.Millisecond, errors.New("no"))
	expect("one failure", 200, 200)
	now = now.Add(21 * time.Second)
	expect("failing for long", 503, 503)
	h.done(time.Millisecond, nil)
	expect("repaired", 200, 200)
	leaving = true
	expect("leaving", 503, 200)
}
