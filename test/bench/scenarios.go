package main

import (
	"bytes"
	"context"
	"fmt"
)

// scenario is a load of the scheduler: pods that are to be bound to nodes, and what is there before them.
type scenario struct {
	name        string
	nodes, pods int
	// more is how many of the pods before them are tried as well, and fit nowhere.
	more int
	// spec is what the pods' spec has beyond requests; labels, if not nil, what a pod's labels have beyond app and group.
	spec   string
	labels func(i int) string
	// before makes what is there before the pods.
	before func(ctx context.Context, l *load) error
}

const (
	apart  = `,"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"bench"}}}]}}`
	near   = `,"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"topology.kubernetes.io/zone","labelSelector":{"matchLabels":{"app":"bench"}}}]}}`
	spread = `,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"bench"}}}]`
	// never is a constraint that no node can meet: none has the key.
	never = `,"priorityClassName":"first","topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"example.com/rack","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"waiting"}}}]`
)

// scenarios of the scheduler. The last four must cost about what plain pods cost, at any size.
func scenarios() []scenario {
	out := []scenario{
		{name: "1,000 nodes / 3,000 pods", nodes: 1000, pods: 3000},
		{name: "5,000 nodes / 5,000 pods", nodes: 5000, pods: 5000},
		{name: "anti-affinity, 5,000 / 2,000", nodes: 5000, pods: 2000, spec: apart},
		{name: "affinity, 5,000 / 2,000", nodes: 5000, pods: 2000, spec: near},
		{name: "topology spread, 5,000 / 2,000", nodes: 5000, pods: 2000, spec: spread},
	}
	for _, nodes := range []int{1000, 5000} {
		size := fmt.Sprintf(", %d,000 / 1,000", nodes/1000)
		out = append(out,
			scenario{name: "StatefulSet-like" + size, nodes: nodes, pods: 1000, labels: index, spec: spread, before: services(1)},
			scenario{name: "one pod nominated" + size, nodes: nodes, pods: 1000, before: nominated},
			scenario{name: "5,000 waiting to be spread" + size, nodes: nodes, pods: 1000, more: 5000, before: waiting(5000)},
			scenario{name: "5,000 Services" + size, nodes: nodes, pods: 1000, before: services(5000)},
		)
	}
	return out
}

// index gives each pod labels of its own, as a StatefulSet does.
func index(i int) string {
	return fmt.Sprintf(`,"apps.kubernetes.io/pod-index":"%[1]d","statefulset.kubernetes.io/pod-name":"p-%[1]d"`, i)
}

// body is the i-th pod.
func (sc *scenario) body(i int) []byte {
	if sc.labels == nil {
		return pod(i, sc.spec)
	}
	return bytes.Replace(pod(i, sc.spec), []byte(`"app":"bench"`), []byte(`"app":"bench"`+sc.labels(i)), 1)
}

// services makes n Services, the first of which selects the pods.
func services(n int) func(context.Context, *load) error {
	return func(ctx context.Context, l *load) error {
		_, err := l.many(ctx, n, 16, func(i int) request {
			selector := `{"app":"bench"}`
			if i > 0 {
				selector = fmt.Sprintf(`{"app":"other-%d"}`, i)
			}
			return request{method: "POST", path: "/api/v1/namespaces/" + namespace + "/services", want: 201,
				body: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Service","metadata":{"name":"s-%d"},"spec":{"clusterIP":"None","selector":%s,"ports":[{"port":80}]}}`, i, selector)}
		})
		return err
	}
}

// nominated makes a pod that waits for room on a node for as long as the scenario lasts: it is gated.
func nominated(ctx context.Context, l *load) error {
	gated := bytes.Replace(pod(0, `,"schedulingGates":[{"name":"example.com/wait"}]`), []byte(`"name":"p-0"`), []byte(`"name":"nominated"`), 1)
	if err := l.do(ctx, request{method: "POST", path: podsPath, body: gated, want: 201}); err != nil {
		return err
	}
	return l.do(ctx, request{method: "PATCH", path: podsPath + "/nominated/status", contentType: "application/merge-patch+json", want: 200,
		body: []byte(`{"status":{"nominatedNodeName":"node-1"}}`)})
}

// waiting makes n pods that are tried first and fit nowhere.
func waiting(n int) func(context.Context, *load) error {
	return func(ctx context.Context, l *load) error {
		if err := l.do(ctx, request{method: "POST", path: "/apis/scheduling.k8s.io/v1/priorityclasses", want: 201,
			body: []byte(`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"first"},"value":1000,"preemptionPolicy":"Never"}`)}); err != nil {
			return err
		}
		_, err := l.many(ctx, n, 16, func(i int) request {
			body := bytes.Replace(pod(i, never), []byte(`"name":"p-`), []byte(`"name":"waiting-`), 1)
			return request{method: "POST", path: podsPath, want: 201, body: bytes.Replace(body, []byte(`"app":"bench"`), []byte(`"app":"waiting"`), 1)}
		})
		return err
	}
}
