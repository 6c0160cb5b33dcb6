package history

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	kills        = flag.Int("kills", 4, "how often etcd and kube-apiserver are killed, in turn")
	duration     = flag.Duration("duration", 8*time.Second, "how long clients write, at least")
	writers      = flag.Int("writers", 4, "how many clients write")
	slower       = flag.Int("slower", 1, "how many times slower than this machine the servers are: clients ask less often and wait longer")
	outside      = flag.String("server", "", "the URL of the cluster that TestOutside tries")
	outsideToken = flag.String("token", "", "a bearer token of that cluster's administrator")
)

const (
	// watchers resume at once; one more, the late one, resumes only when its version is forgotten.
	watchers = 3
	// patience bounds the wait for the watchers when all is written.
	patience = time.Minute
	// forgetting bounds the wait for the first 410, which takes some compactions of an etcd that a busy machine makes
	// slow.
	forgetting = 5 * time.Minute
)

func checkFlags(kills int, duration time.Duration) error {
	if kills < 0 || duration <= 0 || duration/time.Duration(kills+1) <= 0 {
		return fmt.Errorf("-kills=%d -duration=%v: there can be no fewer than 0 kills, and no two at the same time",
			kills, duration)
	}
	return nil
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		kills    int
		duration time.Duration
		ok       bool
	}{{0, time.Second, true}, {4, 8 * time.Second, true}, {-1, time.Second, false}, {math.MaxInt, time.Second, false},
		{4, 0, false}, {4, -time.Second, false}, {4, 4, false}} {
		if err := checkFlags(c.kills, c.duration); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestHistory: whatever clients are told while etcd and the API server are killed fits together.
func TestHistory(t *testing.T) {
	if err := checkFlags(*kills, *duration); err != nil {
		t.Fatal(err)
	}
	client := newClient(t, token, *writers+watchers)
	etcd, apis := servers(t, client, 1, func(int) []string {
		return []string{"--service-cluster-ip-range=10.96.0.0/16",
			"--etcd-compaction-interval=" + compactEvery.String()}
	})
	apiserver := apis[0]
	host := apiserver.url
	ctx := t.Context()
	for _, s := range []*server{etcd, apiserver} {
		if err := s.start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	a := newAPI(ctx, t, client, host)
	starts := apiserver.starts.Load()
	h := record(ctx, t, a, func(working context.Context, version uint64) {
		awaitForgotten(working, etcd, apiserver, starts, version)
		starts = apiserver.starts.Load()
	}, func(ctx context.Context) error {
		if err := killInTurn(ctx, etcd, apiserver); err != nil || *kills == 0 {
			return err
		}
		return a.awaitTooOld(ctx)
	})
	t.Logf("%d kills", *kills)
	judge(t, a, h)
}

// TestOutside does the same to a cluster that somebody else starts and interrupts, with its writers at work until the
// test's standard input ends. The cluster is then up.
func TestOutside(t *testing.T) {
	if *outside == "" {
		t.Skip("runs with -server and -token")
	}
	a := newAPI(t.Context(), t, newClient(t, *outsideToken, *writers+watchers), *outside)
	h := record(t.Context(), t, a, nil, func(ctx context.Context) error {
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, os.Stdin)
			ended <- err
		}()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	judge(t, a, h)
}

// newAPI makes the namespace on a server.
func newAPI(ctx context.Context, t *testing.T, client *http.Client, url string) *api {
	t.Helper()
	ns := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": meta{Name: namespace}}
	if code, answer, err := call(ctx, client, http.MethodPost, url+"/api/v1/namespaces", "application/json",
		ns); err != nil || code != http.StatusCreated {
		t.Fatalf("create the namespace: %d %s %v", code, answer, err)
	}
	return &api{client: client, url: url + "/api/v1/namespaces/" + namespace + "/configmaps", clock: &atomic.Int64{}}
}

// judge reports what in a history contradicts itself, and how much was checked.
func judge(t *testing.T, a *api, h history) {
	t.Helper()
	summarize(t, h, a.tooOld.Load())
	for i, v := range check(h) {
		if i == 20 {
			t.Fatal("and more")
		}
		t.Error(v)
	}
}

// record lets clients work while interrupt does its worst to the servers, until it returns, and returns what the
// clients were told. If late is not nil, one more watcher calls it before it resumes after a version, until the work
// ends.
func record(ctx context.Context, t *testing.T, a *api, late func(working context.Context, version uint64),
	interrupt func(context.Context) error) (h history) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	var end atomic.Uint64
	var workers, followers sync.WaitGroup
	var mu sync.Mutex // over h
	for i := range *writers {
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
			w := a.follow(watching, &end, fmt.Sprintf("watcher %d", i), 1+i, func(uint64) {})
			mu.Lock()
			defer mu.Unlock()
			h.watchers = append(h.watchers, w)
		})
	}
	if late != nil {
		followers.Go(func() {
			w := a.follow(watching, &end, "late watcher", 1, func(version uint64) { late(working, version) })
			mu.Lock()
			defer mu.Unlock()
			h.watchers = append(h.watchers, w)
		})
	}
	err := interrupt(ctx)
	stop()
	workers.Wait()
	if err == nil {
		err = a.finish(ctx, &h)
	}
	end.Store(h.end)
	time.AfterFunc(slowed(patience), stopWatching)
	if err != nil {
		stopWatching()
	}
	followers.Wait()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// awaitForgotten returns when a watch from version on cannot be served any more: etcd has compacted it, and the API
// server has been started more than starts times, so that it does not remember it either. Or when ctx ends.
func awaitForgotten(ctx context.Context, etcd, apiserver *server, starts int64, version uint64) {
	tick := time.NewTicker(slowed(writeEvery))
	defer tick.Stop()
	for apiserver.starts.Load() == starts || !etcd.compacted(ctx, version) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// awaitTooOld waits until a watcher was told that its version is too old.
func (a *api) awaitTooOld(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, forgetting)
	defer cancel()
	tick := time.NewTicker(slowed(writeEvery))
	defer tick.Stop()
	for a.tooOld.Load() == 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("no watcher came too late, though one waits for it")
		}
	}
	return nil
}

// killInTurn spreads the kills over the duration. A killed server is started at once and is healthy before the next
// kill.
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
func summarize(t *testing.T, h history, tooOld int64) {
	outcomes := map[outcome]int{}
	for _, w := range h.writes {
		outcomes[w.outcome]++
	}
	events := 0
	for _, w := range h.watchers {
		for _, s := range w.segments {
			events += len(s.events)
		}
	}
	t.Logf("writes: %d done, %d refused, %d unknown; %d lists; %d events to %d watchers, which came too late %d times",
		outcomes[done], outcomes[refused], outcomes[unknown], len(h.lists), events, len(h.watchers), tooOld)
	if outcomes[done] == 0 || len(h.lists) == 0 || events == 0 {
		t.Error("nothing was checked")
	}
}
