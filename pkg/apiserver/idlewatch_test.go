package apiserver_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
)

// untilIdle is a watch's answer that keeps nothing but the knowledge that the initial events have ended.
type untilIdle struct {
	header http.Header
	ended  chan struct{}
}

func (u *untilIdle) Header() http.Header { return u.header }
func (u *untilIdle) WriteHeader(int)     {}
func (u *untilIdle) Flush()              {}
func (u *untilIdle) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(`"BOOKMARK"`)) {
		close(u.ended)
	}
	return len(p), nil
}

// TestIdleWatchIsSmall: a watch that has had its initial events and waits is left with a stack of 8 KiB, whatever it
// had grown to.
func TestIdleWatchIsSmall(t *testing.T) { // not beside others: it measures the process
	if info, ok := debug.ReadBuildInfo(); ok &&
		slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector's stacks are larger")
	}
	url, server := startServer(t, nil)
	for i := range 100 {
		if code, _, body := call(t, http.MethodPost, url+"/api/v1/namespaces/default/configmaps",
			fmt.Sprintf(`{"metadata":{"name":"c-%d"}}`, i)); code != http.StatusCreated {
			t.Fatalf("%d %s", code, body)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var watches sync.WaitGroup
	defer watches.Wait()
	defer cancel()
	watch := func() {
		w := &untilIdle{header: http.Header{}, ended: make(chan struct{})}
		r := httptest.NewRequestWithContext(ctx, http.MethodGet,
			url+"/api/v1/namespaces/default/configmaps?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", nil)
		r.Header.Set("Test-User", "admin")
		watches.Go(func() { server.ServeHTTP(w, r) })
		<-w.ended
	}
	watch()
	const n = 300
	before := stacks()
	for range n {
		watch()
	}
	if each := (stacks() - before) / n; each > 10<<10 {
		t.Errorf("the stack of a watch that waits is %d bytes", each)
	}
}

// stacks is how many bytes the process's stacks are after the collector has shrunk them as far as it does, by half each
// time.
func stacks() int {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.StackInuse)
}
