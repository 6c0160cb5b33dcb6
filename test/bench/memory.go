package main

import (
	"context"
	"fmt"
	"time"
)

// measureMemory puts ten times the API server's usual load of pods into etcd, starts a fresh API server on it, and
// tells what that one holds for each pod: once they are read, and after lists of them as JSON. Its memory without pods
// counts as part of it.
func measureMemory(ctx context.Context, s side) ([]figure, error) {
	srv, err := startServer(ctx, s)
	if err != nil {
		return nil, err
	}
	defer srv.stop()
	n := 10 * s.pods
	_, err = srv.load.many(ctx, n, 16, func(i int) request {
		return request{method: "POST", path: podsPath, body: pod(i, ""), want: 201}
	})
	if err != nil {
		return nil, fmt.Errorf("create pods: %w", err)
	}
	out := []figure{{fmt.Sprintf("RSS after creating %d pods", n), "MB", srv.api.memory("VmRSS")}}
	srv.api.stop()
	if err := srv.startAPI(ctx); err != nil {
		return nil, err
	}
	for _, step := range []struct {
		name, accept string
		lists        int
	}{{"once read", protobuf, 1}, {"after lists as protobuf", protobuf, 10}, {"after lists as JSON", "", 10}} {
		list := request{method: "GET", path: podsPath, accept: step.accept, want: 200}
		if _, err := srv.load.many(ctx, step.lists, 1, func(int) request { return list }); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
		if err := settle(ctx); err != nil {
			return nil, err
		}
		rss := srv.api.memory("VmRSS")
		out = append(out, figure{"RSS " + step.name, "MB", rss},
			figure{"  for each pod", "KB", rss * 1024 / float64(n)})
	}
	return append(out, figure{"peak RSS", "MB", srv.api.memory("VmHWM")}), nil
}

// settle gives the server the time to return what it needed for a moment.
func settle(ctx context.Context) error {
	select {
	case <-time.After(10 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
