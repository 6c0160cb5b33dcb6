package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// workers is how many pods the fake nodes answer for at once.
const workers = 8

// withManager calls measure with an API server, the side's controller manager of these controllers, and fake nodes that
// give each new pod the status as soon as they see it. All of it ends afterwards. An error of measure comes with the
// end of the manager's log.
func withManager(ctx context.Context, s side, controllers, status string,
	measure func(l *load, manager *proc) ([]figure, error)) ([]figure, error) {
	srv, err := startServer(ctx, s)
	if err != nil {
		return nil, err
	}
	defer srv.stop()
	manager, err := startManager(ctx, s, srv, controllers)
	if err != nil {
		return nil, err
	}
	defer manager.stop()
	playing, stop := context.WithCancel(ctx)
	defer stop()
	nodes := errgroup.Group{}
	nodes.Go(func() error { return srv.load.playPods(playing, status) })
	figures, err := measure(srv.load, manager)
	if err != nil {
		err = fmt.Errorf("%w: %s", err, manager.tail())
	}
	stop()
	return figures, errors.Join(err, nodes.Wait())
}

// startManager starts the side's controller manager with these controllers, without limits of its own and without
// leader election.
func startManager(ctx context.Context, s side, srv *server, controllers string) (*proc, error) {
	kubeconfig := filepath.Join(srv.dir, "manager.kubeconfig")
	if err := os.WriteFile(kubeconfig, srv.load.kubeconfig(), 0o600); err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	return startIn(ctx, srv.env, filepath.Join(srv.dir, "manager.log"), filepath.Join(s.bin, "kube-controller-manager"),
		"--kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port="+ports[0], "--leader-elect=false", "--kube-api-qps=10000",
		"--kube-api-burst=10000",
		"--controllers="+controllers)
}

// playPods plays the nodes: each new pod gets the status, a merge patch.
func (l *load) playPods(ctx context.Context, status string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers + 1)
	seen := map[string]bool{}
	end := func(event []byte) bool {
		name, _ := nameAndNode(event)
		if seen[name] || !bytes.Contains(event, []byte(`"phase":"Pending"`)) {
			return false
		}
		seen[name] = true
		g.Go(func() error {
			return l.do(ctx, request{method: "PATCH", path: podsPath + "/" + name + "/status", body: []byte(status),
				contentType: "application/merge-patch+json", want: 200})
		})
		return false
	}
	err := l.follow(ctx, podsPath, end)
	if waited := g.Wait(); err == nil {
		err = waited
	}
	if ctx.Err() != nil {
		return nil // what they were for is done
	}
	return err
}
