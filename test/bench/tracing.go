package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
)

// The load of measureTracing: so many Deployments of so many pods in each turn. Rounds are a multiple of the three
// planes, so that none is the first more often than the others.
const (
	tracingRounds      = 18
	tracingDeployments = 15
	tracingReplicas    = 10
	tracingPods        = tracingDeployments * tracingReplicas
)

// measureTracing runs the same load of pods, from the request for their Deployment to their deletion, on three control
// planes: two that send no spans, and one that sends all of them to a bonsai-traces. They take turns, so that a busy
// machine slows all of them alike. By how much the two without spans differ is the error of the figures.
// Nodes are played: the spans of kubelets are in the store's part, but what it costs a kubelet to make them is not.
func measureTracing(ctx context.Context, s side) (_ []figure, err error) {
	store, err := newTraceStore()
	if err != nil {
		return nil, err
	}
	planes := make([]*plane, 3)
	defer func() {
		for _, p := range planes {
			err = errors.Join(err, p.stop())
		}
	}()
	for i, of := range []*traceStore{nil, store, nil} {
		if planes[i], err = startPlane(ctx, s, planeNodes, of); err != nil {
			return nil, errors.Join(err, of.stop())
		}
	}
	used := make([]map[string]float64, len(planes))
	for round := range tracingRounds + 1 { // the first warms up
		for turn := range planes {
			i := (round + turn) % len(planes)
			cpu, err := planes[i].turn(ctx, fmt.Sprint("d", round))
			if err != nil {
				return nil, err
			}
			if round == 0 {
				used[i] = map[string]float64{}
				continue
			}
			for name, ms := range cpu {
				used[i][name] += ms / tracingRounds
			}
		}
	}
	return tracingFigures(ctx, planes, used)
}

// turn runs the load once and returns the milliseconds of CPU that each process used for a pod.
func (p *plane) turn(ctx context.Context, prefix string) (map[string]float64, error) {
	before := p.used()
	if _, err := p.run(ctx, prefix, tracingDeployments, tracingReplicas); err != nil {
		return nil, err
	}
	if err := p.end(ctx, prefix, tracingDeployments); err != nil {
		return nil, err
	}
	after := p.used()
	for name := range after {
		after[name] = (after[name] - before[name]) * 1000 / tracingPods
	}
	return after, nil
}

func tracingFigures(ctx context.Context, planes []*plane, used []map[string]float64) ([]figure, error) {
	off, on, again := 0, 1, 2
	var out []figure
	for _, name := range components(used[on]) {
		out = append(out, figure{name + ": CPU for each pod, with all spans", "ms", used[on][name]})
		if without, ok := used[off][name]; ok {
			out = append(out, figure{"  without", "ms", (without + used[again][name]) / 2})
		}
	}
	sum := func(of map[string]float64) (all float64) {
		for _, ms := range of {
			all += ms
		}
		return all
	}
	without := (sum(used[off]) + sum(used[again])) / 2
	out = append(out, figure{"all: CPU for each pod, with all spans", "ms", sum(used[on])},
		figure{"  without", "ms", without},
		figure{"  more with all spans", "%", sum(used[on])/without*100 - 100},
		figure{"  by how much the two without differ", "%", math.Abs(sum(used[again])/sum(used[off])-1) * 100})
	for _, name := range components(used[on]) {
		out = append(out, figure{name + ": RSS with all spans", "MB", planes[on].memory()[name]})
		if without, ok := planes[off].memory()[name]; ok {
			out = append(out, figure{"  without", "MB", without})
		}
	}
	received, err := planes[on].store.load.metric(ctx, "bonsai_traces_received_spans_total", "")
	if err != nil {
		return nil, err
	}
	lost, err := planes[on].lost(ctx)
	return append(out, figure{"spans for each pod", "", received / ((tracingRounds + 1) * tracingPods)},
		figure{"spans that the API server lost", "", lost}), err
}

// lost is how many spans the API server could not send.
func (p *plane) lost(ctx context.Context) (float64, error) {
	sum := 0.0
	for _, result := range strings.Fields("failed dropped") {
		n, err := p.srv.load.metric(ctx, "bonsai_trace_spans_total", `result="`+result+`"`)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
