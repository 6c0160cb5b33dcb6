package history

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	kills    = flag.Int("kills", 4, "how often etcd and kube-apiserver are killed, in turn")
	duration = flag.Duration("duration", 8*time.Second, "how long clients write, at least")
)

const (
	writers  = 4
	watchers = 3
	// patience bounds the wait for the watchers when all is written.
	patience = time.Minute
)

// TestHistory: whatever clients are told while etcd and the API server are killed fits together.
func TestHistory(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: writers + watchers}}
	t.Cleanup(client.CloseIdleConnections)
	etcd, apiserver, host := servers(t, client)
	ctx := t.Context()
	for _, s := range []*server{etcd, apiserver} {
		if err := s.start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	ns := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": meta{Name: namespace}}
	if code, answer, err := call(ctx, client, http.MethodPost, host+"/api/v1/namespaces", "application/json", ns); err != nil || code != http.StatusCreated {
		t.Fatalf("create the namespace: %d %s %v", code, answer, err)
	}
	a := &api{client: client, url: host + "/api/v1/namespaces/" + namespace + "/configmaps", clock: &atomic.Int64{}}
	h := record(ctx, t, a, etcd, apiserver)
	for i, v := range check(h) {
		if i == 20 {
			t.Fatal("and more")
		}
		t.Error(v)
	}
	summarize(t, h)
}

// record lets clients work while the servers are killed in turn, and returns what they were told.
func record(ctx context.Context, t *testing.T, a *api, etcd, apiserver *server) (h history) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	var end atomic.Uint64
	var workers, followers sync.WaitGroup
	var mu sync.Mutex // over h
	for i := range writers {
		workers.Go(func() {
			writes := a.write(ctx, working, i)
			mu.Lock()
			defer mu.Unlock()
			h.writes = append(h.writes, writes...)
		})
	}
	workers.Go(func() {
		lists := a.lists(ctx, working)
		mu.Lock()
		defer mu.Unlock()
		h.lists = lists
	})
	for i := range watchers {
		followers.Go(func() {
			w := a.follow(watching, &end, fmt.Sprintf("watcher %d", i), 1+i)
			mu.Lock()
			defer mu.Unlock()
			h.watchers = append(h.watchers, w)
		})
	}
	err := killInTurn(ctx, etcd, apiserver)
	stop()
	workers.Wait()
	if err == nil {
		err = a.finish(ctx, &h)
	}
	end.Store(h.end)
	time.AfterFunc(patience, stopWatching)
	if err != nil {
		stopWatching()
	}
	followers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// killInTurn spreads the kills over the duration. A killed server is started at once and is healthy before the next kill.
func killInTurn(ctx context.Context, etcd, apiserver *server) error {
	tick := time.NewTicker(*duration / time.Duration(*kills+1))
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if i >= *kills {
			return nil
		}
		s := []*server{apiserver, etcd}[i%2]
		s.kill()
		if err := s.start(ctx); err != nil {
			return err
		}
		if err := apiserver.await(ctx); err != nil {
			return err
		}
	}
}

// finish makes the last write, when no other is under way.
func (a *api) finish(ctx context.Context, h *history) error {
	for i := range 10 {
		w, _ := a.do(ctx, write{verb: create, name: fmt.Sprintf("end-%d", i), mark: fmt.Sprintf("end-%d", i)}, object{})
		h.writes = append(h.writes, w)
		if w.outcome == done {
			h.end = w.version
			return nil
		}
	}
	return fmt.Errorf("the last write is not confirmed: %+v", h.writes[len(h.writes)-1])
}

// summarize says how much was checked, and fails if that is nothing.
func summarize(t *testing.T, h history) {
	outcomes := map[outcome]int{}
	for _, w := range h.writes {
		outcomes[w.outcome]++
	}
	events, segments := 0, 0
	for _, w := range h.watchers {
		segments += len(w.segments)
		for _, s := range w.segments {
			events += len(s.events)
		}
	}
	t.Logf("%d kills; writes: %d done, %d refused, %d unknown; %d lists; %d events to %d watchers, which began %d times",
		*kills, outcomes[done], outcomes[refused], outcomes[unknown], len(h.lists), events, len(h.watchers), segments)
	if outcomes[done] == 0 || len(h.lists) == 0 || events == 0 {
		t.Error("nothing was checked")
	}
}
