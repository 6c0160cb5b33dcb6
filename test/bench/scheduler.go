package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// measureScheduler times each scenario from the first to the last bind, on fresh servers. The API server is ours for
// both sides where the side has none of its own. CPU is all that the scheduler used, with its start; in scenarios that
// begin at rest only what it used for the pods.
func measureScheduler(ctx context.Context, s side) ([]figure, error) {
	var out []figure
	for _, sc := range scenarios() {
		if !strings.Contains(sc.name, s.scenario) {
			continue
		}
		rate, cpu, others, err := schedule(ctx, s, &sc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sc.name, err)
		}
		if sc.atRest { // the pods come only as fast as they are made
			out = append(out, figure{sc.name + ": scheduler CPU for each", "ms", cpu})
			continue
		}
		out = append(out, figure{sc.name, "pods/s", rate}, figure{"  scheduler CPU for each", "ms", cpu},
			figure{"  API server and etcd CPU for each", "ms", others})
	}
	return out, nil
}

// schedule returns pods a second, and the milliseconds of CPU for each pod of the scheduler and of the API server and
// etcd below it.
func schedule(ctx context.Context, s side, sc *scenario) (rate, cpu, others float64, err error) {
	srv, err := startServer(ctx, s)
	if err != nil {
		return 0, 0, 0, err
	}
	defer srv.stop()
	if _, err := srv.load.many(ctx, sc.nodes, 16, func(i int) request {
		return request{method: "POST", path: "/api/v1/nodes", body: node(i), want: 201}
	}); err != nil {
		return 0, 0, 0, err
	}
	if sc.before != nil {
		if err := sc.before(ctx, srv.load); err != nil {
			return 0, 0, 0, err
		}
	}
	makePods := func() error {
		_, err := srv.load.many(ctx, sc.pods, 16, func(i int) request {
			return request{method: "POST", path: podsPath, body: sc.body(i), want: 201}
		})
		return err
	}
	if !sc.atRest {
		if err := makePods(); err != nil {
			return 0, 0, 0, err
		}
	}
	below := func() float64 { return srv.api.cpu() + srv.etcd.cpu() }
	began, belowBegan, g, helpers := 0.0, below(), errgroup.Group{}, errgroup.Group{}
	if sc.beside != nil {
		beside, end := context.WithCancel(ctx)
		defer func() {
			end()
			err = errors.Join(err, helpers.Wait())
		}()
		helpers.Go(func() error { return sc.beside(beside, srv.load) })
	}
	p, err := startScheduler(ctx, s, srv)
	if err != nil {
		return 0, 0, 0, err
	}
	defer p.stop()
	if sc.atRest {
		if err := p.rest(ctx); err != nil {
			return 0, 0, 0, fmt.Errorf("%w: %s", err, p.tail())
		}
		began, belowBegan = p.cpu(), below()
		g.Go(makePods)
	}
	took, err := srv.load.bound(ctx, sc.pods)
	if err := errors.Join(err, g.Wait()); err != nil {
		return 0, 0, 0, fmt.Errorf("%w: %s", err, p.tail())
	}
	each := 1000 / float64(sc.pods)
	return float64(sc.pods) / took.Seconds(), (p.cpu() - began) * each, (below() - belowBegan) * each, nil
}

// startScheduler starts the side's scheduler without limits of its own and without leader election.
func startScheduler(ctx context.Context, s side, srv *server) (*proc, error) {
	kubeconfig, config := filepath.Join(srv.dir, "kubeconfig"), filepath.Join(srv.dir, "scheduler.yaml")
	if err := os.WriteFile(kubeconfig, srv.load.kubeconfig(), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(config,
		fmt.Appendf(nil, `{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration","clientConnection":{"kubeconfig":%q,"qps":10000,"burst":10000},"leaderElection":{"leaderElect":false}}`, kubeconfig), 0o600); err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	return startIn(ctx, srv.env, filepath.Join(srv.dir, "scheduler.log"), filepath.Join(s.bin, "kube-scheduler"),
		"--config="+config, "--bind-address=127.0.0.1",
		"--secure-port="+ports[0], "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
}

// rest waits until the process has used nearly no CPU for three seconds.
func (p *proc) rest(ctx context.Context) error {
	last, quiet := p.cpu(), 0
	for range 300 {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		now := p.cpu()
		if quiet++; now-last > 0.03 {
			quiet = 0
		}
		if last = now; quiet == 3 && now > 0 {
			return nil
		}
	}
	return errors.New("the scheduler does not come to rest")
}

// bound waits until n of the scenario's pods have a node and returns the time between the first and the last. A server
// may end a watch: it is opened again from the newest state.
func (l *load) bound(ctx context.Context, n int) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	seen := map[string]bool{}
	var first, last time.Time
	for len(seen) < n {
		resp, err := l.open(ctx, request{method: "GET", path: podsPath + "?watch=1&resourceVersion=0"})
		if err != nil {
			return 0, fmt.Errorf("%d of %d pods bound: %w", len(seen), n, err)
		}
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(make([]byte, 1<<20), 1<<22)
		for len(seen) < n && lines.Scan() {
			name, hasNode := nameAndNode(lines.Bytes())
			if !hasNode || seen[name] || !strings.HasPrefix(name, "p-") {
				continue
			}
			if last = time.Now(); first.IsZero() {
				first = last
			}
			seen[name] = true
		}
		resp.Body.Close()
	}
	return last.Sub(first), nil
}

// nameAndNode reads metadata.name and whether spec.nodeName is there, without decoding.
func nameAndNode(event []byte) (string, bool) {
	_, rest, _ := bytes.Cut(event, []byte(`"name":"`))
	name, _, _ := bytes.Cut(rest, []byte(`"`))
	return string(name), bytes.Contains(event, []byte(`"nodeName":"`))
}

func node(i int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-%[1]d","labels":{"kubernetes.io/hostname":"node-%[1]d","topology.kubernetes.io/zone":"zone-%[2]d","kubernetes.io/os":"linux"}},"status":{"capacity":{"cpu":"32","memory":"64Gi","pods":"110","ephemeral-storage":"100Gi"},"allocatable":{"cpu":"32","memory":"64Gi","pods":"110","ephemeral-storage":"100Gi"},"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","lastHeartbeatTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, i, i%3)
}
