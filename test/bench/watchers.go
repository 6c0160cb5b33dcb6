package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// streamsEach is how many watches share a connection, where they share one: as many as a server allows by default.
const streamsEach = 1000

// Watchers are given so many config maps, and then nothing.
const (
	configMaps     = 100
	configMapsPath = "/api/v1/namespaces/" + namespace + "/configmaps"
)

// waits is how many creates and gets of others are timed.
const waits = 1000

// measureWatchers tells what the API server holds for a watcher that has been given its objects and waits, and how long
// others wait for their creates and gets beside twice as many of them as there are pods in the usual load. Watches
// share connections, as those of one process do; in the end each has its own, as in as many processes.
func measureWatchers(ctx context.Context, s side) ([]figure, error) {
	srv, err := startServer(ctx, s)
	if err != nil {
		return nil, err
	}
	defer srv.stop()
	_, err = srv.load.many(ctx, configMaps, 16, func(i int) request {
		return request{method: "POST", path: configMapsPath,
			body: fmt.Appendf(nil, `{"metadata":{"name":"c-%d"},"data":{"a":"b"}}`, i), want: 201}
	})
	if err != nil {
		return nil, fmt.Errorf("create config maps: %w", err)
	}
	alone, err := srv.load.timed(ctx, 0)
	if err != nil {
		return nil, err
	}
	out := []figure{{"RSS without watchers", "MB", srv.api.memory("VmRSS")}}
	watching, leave := context.WithCancel(ctx)
	defer leave()
	shared, err := srv.idleWatchers(watching, 2*s.pods, streamsEach)
	if err != nil {
		return nil, err
	}
	out = append(out, shared...)
	idle, err := idleCPU(ctx, srv.api, 10*time.Second)
	if err != nil {
		return nil, err
	}
	out = append(out, figure{"  CPU while nothing changes", "% of a core", idle})
	beside, err := srv.load.timed(ctx, waits)
	if err != nil {
		return nil, err
	}
	for i, name := range []string{"create", "get"} {
		for _, p := range []int{50, 99} {
			at := func(took []time.Duration) float64 { return took[len(took)*p/100].Seconds() * 1000 }
			out = append(out, figure{fmt.Sprintf("%s, p%d without watchers", name, p), "ms", at(alone[i])},
				figure{"  with them", "ms", at(beside[i])})
		}
	}
	srv.api.stop() // what was opened first would be found again in the memory of what follows
	if err := srv.startAPI(ctx); err != nil {
		return nil, err
	}
	lone, err := srv.idleWatchers(watching, s.pods*2/5, 1)
	return append(out, lone...), err
}

// idleWatchers opens n watches of the config maps, so many on each connection, and returns what they cost when all have
// been given what there is and nothing changes. They last until ctx ends.
func (s *server) idleWatchers(ctx context.Context, n, each int) ([]figure, error) {
	before := s.api.memory("VmRSS")
	var given sync.WaitGroup
	for range n / each {
		process := newLoad(s.load.server, s.load.token)
		for range each {
			resp, err := process.open(ctx, request{method: "GET",
				path: configMapsPath + "?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"})
			if err != nil {
				return nil, err
			}
			if resp.StatusCode != 200 {
				resp.Body.Close()
				return nil, fmt.Errorf("watch: HTTP %d", resp.StatusCode)
			}
			given.Add(1)
			go func() {
				defer resp.Body.Close()
				events := bufio.NewScanner(resp.Body)
				for events.Scan() && !bytes.Contains(events.Bytes(), []byte(`"k8s.io/initial-events-end"`)) {
				}
				given.Done()
				_, _ = io.Copy(io.Discard, resp.Body) // until the server or ctx ends
			}()
		}
	}
	given.Wait()
	if err := settle(ctx); err != nil {
		return nil, err
	}
	rss := s.api.memory("VmRSS")
	return []figure{{fmt.Sprintf("RSS with %d idle watchers, %d on a connection", n, each), "MB", rss},
		{"  for each", "KB", (rss - before) * 1024 / float64(n)}}, nil
}

// timed tells, sorted, how long a client waits for each of so many creates and gets of pods, one after the other.
func (l *load) timed(ctx context.Context, first int) (took [2][]time.Duration, err error) {
	for i, make := range []func(n int) request{
		func(n int) request { return request{method: "POST", path: podsPath, body: pod(n, ""), want: 201} },
		func(n int) request {
			return request{method: "GET", path: fmt.Sprintf("%s/p-%d", podsPath, n), want: 200}
		},
	} {
		for n := range waits {
			began := time.Now()
			if err := l.do(ctx, make(first+n)); err != nil {
				return took, err
			}
			took[i] = append(took[i], time.Since(began))
		}
		slices.Sort(took[i])
	}
	return took, nil
}
