package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	completions = 500
	parallelism = 50
	jobsPath    = "/apis/batch/v1/namespaces/" + namespace + "/jobs"
	// workers is how many pods the fake nodes end at once.
	workers = 8
)

// measureJobs times a Job, from its creation to its condition Complete, whose pods succeed as soon as fake nodes see them: what is
// measured is the controller, and the API server below it.
func measureJobs(ctx context.Context, s side) ([]figure, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	srv, err := startServer(ctx, s)
	if err != nil {
		return nil, err
	}
	defer srv.stop()
	manager, err := startManager(ctx, s, srv, "job-controller,garbage-collector-controller")
	if err != nil {
		return nil, err
	}
	defer manager.stop()
	nodes, stop := context.WithCancel(ctx)
	defer stop()
	g := errgroup.Group{}
	g.Go(func() error { return srv.load.playPods(nodes, `{"status":{"phase":"Succeeded"}}`) })
	began := time.Now()
	body := fmt.Appendf(nil, `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"completions":%d,"parallelism":%d,"completionMode":"Indexed","template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"x"}]}}}}`, completions, parallelism)
	if err := srv.load.do(ctx, request{method: "POST", path: jobsPath, body: body, want: 201}); err != nil {
		return nil, err
	}
	complete := func(event []byte) bool { return bytes.Contains(event, []byte(`"type":"Complete"`)) }
	if err := srv.load.follow(ctx, jobsPath, complete); err != nil {
		return nil, fmt.Errorf("%w: %s", err, manager.tail())
	}
	took := time.Since(began)
	stop()
	if err := g.Wait(); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("a Job of %d completions, %d at a time", completions, parallelism)
	return []figure{{name, "s", took.Seconds()}, {"  controller manager CPU for each pod", "ms", manager.cpu() * 1000 / completions}, {"  controller manager RSS", "MB", manager.memory("VmRSS")}}, nil
}

// startManager starts the side's controller manager with these controllers, without limits of its own and without leader election.
func startManager(ctx context.Context, s side, srv *server, controllers string) (*proc, error) {
	kubeconfig := filepath.Join(srv.dir, "manager.kubeconfig")
	if err := os.WriteFile(kubeconfig, srv.load.kubeconfig(), 0o600); err != nil {
		return nil, err
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	return start(ctx, filepath.Join(srv.dir, "manager.log"), filepath.Join(s.bin, "kube-controller-manager"), "--kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port="+ports[0], "--leader-elect=false", "--kube-api-qps=10000", "--kube-api-burst=10000",
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
			return l.do(ctx, request{method: "PATCH", path: podsPath + "/" + name + "/status", body: []byte(status), contentType: "application/merge-patch+json", want: 200})
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

// follow gives f the events of a watch from the beginning until it returns true. A server may end a watch: it is opened again.
func (l *load) follow(ctx context.Context, path string, f func(event []byte) bool) error {
	for {
		resp, err := l.open(ctx, request{method: "GET", path: path + "?watch=1&resourceVersion=0"})
		if err != nil {
			return err
		}
		done := false
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(make([]byte, 1<<20), 1<<22)
		for !done && lines.Scan() {
			done = f(lines.Bytes())
		}
		resp.Body.Close()
		if done {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
