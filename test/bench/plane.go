package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// planeNodes is how many nodes a plane has, each with room for 110 pods; more of these wait.
const planeNodes = 100

// plane is a control plane whose nodes are played, and the store of its traces if it sends any.
type plane struct {
	srv                *server
	manager, scheduler *proc
	store              *traceStore
	players            *errgroup.Group
	stopPlaying        context.CancelFunc
}

// startPlane starts a control plane with so many nodes; with a store it sends all spans there.
func startPlane(ctx context.Context, s side, nodes int, store *traceStore) (_ *plane, err error) {
	p := &plane{store: store}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	if p.srv, err = startServer(ctx, s, store.serverFlags()...); err != nil {
		return nil, err
	}
	p.srv.env = store.env()
	if err := store.start(ctx, s, p.srv); err != nil {
		return nil, err
	}
	if _, err := p.srv.load.many(ctx, nodes, 16, func(i int) request {
		return request{method: "POST", path: "/api/v1/nodes", body: node(i), want: 201}
	}); err != nil {
		return nil, err
	}
	if p.manager, err = startManager(ctx, s, p.srv,
		"deployment-controller,replicaset-controller,garbage-collector-controller"); err != nil {
		return nil, err
	}
	if p.scheduler, err = startScheduler(ctx, s, p.srv); err != nil {
		return nil, err
	}
	tracer, end, err := store.tracer(ctx, "kubelet")
	if err != nil {
		return nil, err
	}
	var playing context.Context
	playing, p.stopPlaying = context.WithCancel(ctx)
	p.players = &errgroup.Group{}
	p.players.Go(func() error {
		defer end()
		return playKubelets(playing, p.srv.load, tracer)
	})
	return p, nil
}

// stop ends everything and returns what went wrong with the nodes.
func (p *plane) stop() error {
	if p == nil {
		return nil
	}
	var err error
	if p.players != nil {
		p.stopPlaying()
		err = p.players.Wait()
	}
	p.scheduler.stop()
	p.manager.stop()
	if p.srv != nil {
		p.srv.stop()
	}
	return errors.Join(err, p.store.stop())
}

// used is the seconds of CPU that each process has used.
func (p *plane) used() map[string]float64 {
	out := map[string]float64{"kube-apiserver": p.srv.api.cpu(), "etcd": p.srv.etcd.cpu(),
		"kube-controller-manager": p.manager.cpu(), "kube-scheduler": p.scheduler.cpu()}
	if p.store != nil {
		out["bonsai-traces"] = p.store.proc.cpu()
	}
	return out
}

// memory is the resident memory of each process in MB.
func (p *plane) memory() map[string]float64 {
	out := map[string]float64{"kube-apiserver": p.srv.api.memory("VmRSS"), "etcd": p.srv.etcd.memory("VmRSS"),
		"kube-controller-manager": p.manager.memory("VmRSS"), "kube-scheduler": p.scheduler.memory("VmRSS")}
	if p.store != nil {
		out["bonsai-traces"] = p.store.proc.memory("VmRSS")
	}
	return out
}

// run makes so many Deployments of so many pods each, and returns how long it takes until all are available.
func (p *plane) run(ctx context.Context, prefix string, deployments, replicas int) (time.Duration, error) {
	l, g := p.srv.load, errgroup.Group{}
	began := time.Now()
	g.Go(func() error {
		_, err := l.many(ctx, deployments, 8, func(i int) request {
			return request{method: "POST", path: deploymentsPath, want: 201,
				body: deploymentOf(fmt.Sprintf("%s-%d", prefix, i), replicas)}
		})
		return err
	})
	done, available := map[string]bool{}, fmt.Appendf(nil, `"availableReplicas":%d`, replicas)
	err := l.follow(ctx, deploymentsPath, func(event []byte) bool {
		if name, _ := nameAndNode(event); strings.HasPrefix(name, prefix+"-") && bytes.Contains(event, available) {
			done[name] = true
		}
		return len(done) == deployments
	})
	if err := errors.Join(err, g.Wait()); err != nil {
		return 0, fmt.Errorf("%d of %d available: %w: %s%s", len(done), deployments, err, p.manager.tail(),
			p.scheduler.tail())
	}
	return time.Since(began), nil
}

// end deletes these Deployments, and waits until their pods are gone and all spans are kept.
func (p *plane) end(ctx context.Context, prefix string, deployments int) error {
	l := p.srv.load
	if _, err := l.many(ctx, deployments, 8, func(i int) request {
		return request{method: "DELETE", path: fmt.Sprintf("%s/%s-%d", deploymentsPath, prefix, i),
			body: []byte(`{"propagationPolicy":"Background"}`), want: 200}
	}); err != nil {
		return err
	}
	if err := l.none(ctx, podsPath); err != nil {
		return err
	}
	return quiet(ctx)
}

// quiet waits until the last spans of a load have been sent, which wait a second for others.
func quiet(ctx context.Context) error {
	select {
	case <-time.After(2500 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// components are the names of the processes, in the order of the table.
func components(of map[string]float64) []string { return slices.Sorted(maps.Keys(of)) }

func deploymentOf(name string, replicas int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"%[1]s"},"spec":{"replicas":%[2]d,"selector":{"matchLabels":{"app":"%[1]s"}},"template":{"metadata":{"labels":{"app":"%[1]s"}},"spec":{"containers":[{"name":"c","image":"example.org/app:1.0"}]}}}}`, name, replicas)
}
