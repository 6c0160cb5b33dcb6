package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bonsai/pkg/proxy"
)

// TestHealth: not before the first rules, not while failures last or a round hangs, and /healthz (not /livez) not on a
// node that is being deleted.
func TestHealth(t *testing.T) {
	t.Parallel()
	now, leaving := time.Unix(1000, 0), false
	m := newMetrics(modeNFTables, proxy.NewState("here"), prometheus.NewRegistry())
	h := newHealth(1, 10*time.Second, m, func() bool { return leaving }, func() time.Time { return now })
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
	h.begin(0)
	h.done(0, time.Millisecond, 0, nil)
	expect("written", 200, 200)
	h.begin(0)
	h.done(0, time.Millisecond, 0, errors.New("no"))
	expect("one failure", 200, 200)
	now = now.Add(21 * time.Second)
	h.begin(0)
	expect("failing for long", 503, 503)
	h.done(0, time.Millisecond, 0, nil)
	expect("repaired", 200, 200)
	h.begin(0)
	h.done(0, time.Millisecond, 1, nil)
	now = now.Add(21 * time.Second)
	expect("a service was refused", 200, 200)
	h.begin(0)
	now = now.Add(21 * time.Second)
	expect("a round that does not end", 503, 503)
	h.done(0, time.Millisecond, 0, nil)
	expect("it ended", 200, 200)
	leaving = true
	expect("leaving", 503, 200)
}

// TestHealthAnswer: the answer has upstream's fields, and is no while the rules of one family are missing.
func TestHealthAnswer(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 5)
	m := newMetrics(modeNFTables, proxy.NewState("here"), prometheus.NewRegistry())
	h := newHealth(2, 10*time.Second, m, func() bool { return false }, func() time.Time { return now })
	ask := func(path string) (out map[string]any) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	h.begin(0)
	h.done(0, time.Millisecond, 0, nil)
	if got := ask("/livez"); got["healthy"] != false || got["lastUpdated"] != "1970-01-01T00:16:40.000000005Z" {
		t.Errorf("half written: %v", got)
	}
	h.begin(1)
	h.done(1, time.Millisecond, 0, nil)
	now = now.Add(time.Second)
	const then, current = "1970-01-01T00:16:40.000000005Z", "1970-01-01T00:16:41.000000005Z"
	status := map[string]any{"IPv4": map[string]any{"lastUpdated": then, "healthy": true},
		"IPv6": map[string]any{"lastUpdated": then, "healthy": true}}
	want := map[string]any{"lastUpdated": current, "currentTime": current, "healthy": true, "status": status}
	if got := ask("/livez"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	want["nodeEligible"] = true
	if got := ask("/healthz"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
