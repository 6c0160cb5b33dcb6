package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	deployments    = 1000
	replicasOfEach = 3
	replacements   = 20
)

// ready is the status of a pod that serves.
const ready = `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`

// measureDeployments times many Deployments, from the creation of the first one until all are available, whose pods
// serve as soon as fake nodes see them; and then how long it takes until a pod that is deleted has a successor, the
// median of some.
func measureDeployments(ctx context.Context, s side) ([]figure, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return withManager(ctx, s, "deployment-controller,replicaset-controller,garbage-collector-controller", ready,
		func(l *load, manager *proc) ([]figure, error) {
			g := errgroup.Group{}
			began := time.Now()
			g.Go(func() error {
				_, err := l.many(ctx, deployments, 16, func(i int) request {
					return request{method: "POST", path: deploymentsPath, body: smallDeployment(i), want: 201}
				})
				return err
			})
			done, available := map[string]bool{}, fmt.Appendf(nil, `"availableReplicas":%d`, replicasOfEach)
			err := l.follow(ctx, deploymentsPath, func(event []byte) bool {
				if name, _ := nameAndNode(event); bytes.Contains(event, available) {
					done[name] = true
				}
				return len(done) == deployments
			})
			if err := errors.Join(err, g.Wait()); err != nil {
				return nil, fmt.Errorf("%d of %d available: %w", len(done), deployments, err)
			}
			took, cpu := time.Since(began), manager.cpu()
			again, err := l.replace(ctx)
			if err != nil {
				return nil, err
			}
			return []figure{
				{fmt.Sprintf("%d Deployments of %d replicas", deployments, replicasOfEach), "s", took.Seconds()},
				{"  controller manager CPU for each pod", "ms", cpu * 1000 / (deployments * replicasOfEach)},
				{"  controller manager RSS", "MB", manager.memory("VmRSS")},
				{"a deleted pod replaced, median", "ms", float64(again.Microseconds()) / 1000},
			}, nil
		})
}

func smallDeployment(i int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d-%[1]d"},"spec":{"replicas":%[2]d,"selector":{"matchLabels":{"app":"d-%[1]d"}},"template":{"metadata":{"labels":{"app":"d-%[1]d"}},"spec":{"containers":[{"name":"c","image":"x"}]}}}}`, i, replicasOfEach)
}

// replace deletes pods one after the other and returns the median of the times until a new one is there.
func (l *load) replace(ctx context.Context) (time.Duration, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	names := make(chan string, deployments*replicasOfEach+replacements)
	g := errgroup.Group{}
	g.Go(func() error {
		seen := map[string]bool{}
		err := l.follow(watching, podsPath, func(event []byte) bool {
			if name, _ := nameAndNode(event); !seen[name] {
				seen[name] = true
				names <- name
			}
			return len(seen) == cap(names)
		})
		if watching.Err() != nil {
			return nil
		}
		return err
	})
	next := func() (string, error) {
		select {
		case name := <-names:
			return name, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	var all []string
	for len(all) < deployments*replicasOfEach {
		name, err := next()
		if err != nil {
			return 0, err
		}
		all = append(all, name)
	}
	var times []time.Duration
	for i := range replacements {
		began := time.Now()
		if err := l.do(ctx, request{method: "DELETE", path: podsPath + "/" + all[i*len(all)/replacements],
			body: []byte(`{"gracePeriodSeconds":0}`), want: 200}); err != nil {
			return 0, err
		}
		if _, err := next(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(began))
	}
	stop()
	slices.Sort(times)
	return times[len(times)/2], g.Wait()
}
