package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The load of measureTracing: so many Deployments of so many pods in each turn. There are twice as many rounds as
// orders of the planes, so that none is always the first.
const (
	tracingRounds      = 12
	tracingDeployments = 15
	tracingReplicas    = 10
	tracingPods        = tracingDeployments * tracingReplicas
)

// measureTracing runs the same load of pods, from the request for their Deployment to their deletion, on three control
// planes: two that send no spans, and one that sends all of them to a bonsai-traces. They take turns, so that a busy
// machine slows all of them alike. What the second without spans uses more than the first is the error of the figures.
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
	all, used := make([][]float64, len(planes)), make([]map[string]float64, len(planes))
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
			sum := 0.0
			for name, ms := range cpu {
				used[i][name] += ms / tracingRounds
				sum += ms
			}
			all[i] = append(all[i], sum)
		}
	}
	return tracingFigures(ctx, planes, all, used)
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

func tracingFigures(ctx context.Context, planes []*plane, all [][]float64,
	used []map[string]float64) ([]figure, error) {
	off, on, again := 0, 1, 2
	var out []figure
	for _, name := range components(used[on]) {
		out = append(out, figure{name + ": CPU for each pod, with all spans", "ms", used[on][name]})
		if without, ok := used[off][name]; ok {
			out = append(out, figure{"  without", "ms", (without + used[again][name]) / 2})
		}
	}
	more := func(i int) float64 {
		ratios := make([]float64, len(all[i]))
		for round := range ratios {
			ratios[round] = all[i][round]/all[off][round]*100 - 100
		}
		return middle(ratios)
	}
	out = append(out, figure{"all: CPU for each pod, with all spans", "ms", middle(all[on])},
		figure{"  without", "ms", middle(append(all[off], all[again]...))},
		figure{"  more with all spans", "%", more(on)}, figure{"  more without, again", "%", more(again)})
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
