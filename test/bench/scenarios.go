package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// scenario is a load of the scheduler: pods that are to be bound to nodes, and what is there before them.
type scenario struct {
	name        string
	nodes, pods int
	// atRest has the pods made when the scheduler has read, and tried, what is there before them.
	atRest bool
	// spec is what the pods' spec has beyond requests, with the pod's number in place of $i; labels what a pod's labels
	// have beyond app and group.
	spec, labels string
	// milliCPU is what each pod asks for; 0 means 100.
	milliCPU int
	// before makes what is there before the pods.
	before func(ctx context.Context, l *load) error
	// beside works while the pods are scheduled, until its context ends; nil: nobody.
	beside func(ctx context.Context, l *load) error
}

const (
	apart  = `,"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"bench"}}}]}}`
	near   = `,"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"topology.kubernetes.io/zone","labelSelector":{"matchLabels":{"app":"bench"}}}]}}`
	spread = `,"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"bench"}}}]`
	// index gives each pod labels of its own, as a StatefulSet does; pinned the node that a DaemonSet's pod is for.
	index  = `,"apps.kubernetes.io/pod-index":"$i","statefulset.kubernetes.io/pod-name":"p-$i"`
	pinned = `,"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["node-$i"]}]}]}}}`
	// urgent pods go before those of full.
	urgent = `,"priorityClassName":"first"`
	// never is a constraint that no node can meet: none has the key.
	never = `,"priorityClassName":"first","topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"example.com/rack","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"waiting"}}}]`
)

// scenarios of the scheduler. Those of two sizes must cost about what plain pods cost, at any size; preemption, which
// takes two tries and a choice of victims, a few times that.
func scenarios() []scenario {
	out := []scenario{
		{name: "1,000 nodes / 3,000 pods", nodes: 1000, pods: 3000},
		{name: "5,000 nodes / 5,000 pods", nodes: 5000, pods: 5000},
		{name: "anti-affinity, 5,000 / 2,000", nodes: 5000, pods: 2000, spec: apart},
		{name: "affinity, 5,000 / 2,000", nodes: 5000, pods: 2000, spec: near},
		{name: "topology spread, 5,000 / 2,000", nodes: 5000, pods: 2000, spec: spread},
		{name: "claims that are bound, 1,000 / 3,000", nodes: 1000, pods: 3000, spec: claimed,
			before: waitForFirst(3000, true)},
		{name: "claims that wait for their pod, 1,000 / 3,000", nodes: 1000, pods: 3000, spec: claimed,
			before: waitForFirst(3000, false), beside: provisioner},
		{name: "claims on devices, 1,000 / 3,000", nodes: 1000, pods: 3000, spec: equipped, before: equip(1000, 3000)},
	}
	for _, nodes := range []int{1000, 5000} {
		size := fmt.Sprintf(", %d,000 / 1,000", nodes/1000)
		out = append(out,
			scenario{name: "StatefulSet-like" + size, nodes: nodes, pods: 1000, atRest: true, labels: index,
				spec: spread, before: services(1)},
			scenario{name: "StatefulSet-like beside 10 pods on each node" + size, nodes: nodes, pods: 1000,
				atRest: true, labels: index, spec: spread, before: running(nodes, 10, 100)},
			scenario{name: "pinned to a node each, as a DaemonSet's" + size, nodes: nodes, pods: 1000, atRest: true,
				spec: pinned, before: services(1)},
			scenario{name: "one pod nominated" + size, nodes: nodes, pods: 1000, atRest: true, before: nominated},
			scenario{name: "5,000 waiting to be spread" + size, nodes: nodes, pods: 1000, atRest: true,
				before: waiting(5000)},
			scenario{name: "5,000 Services" + size, nodes: nodes, pods: 1000, atRest: true, before: services(5000)},
			scenario{name: "preemption" + size, nodes: nodes, pods: 1000, atRest: true, milliCPU: 8000, spec: urgent,
				before: full(nodes)},
		)
	}
	return out
}

// body is the i-th pod.
func (sc *scenario) body(i int) []byte {
	number := strconv.Itoa(i)
	labels := `"app":"bench"` + strings.ReplaceAll(sc.labels, "$i", number)
	body := bytes.Replace(pod(i, strings.ReplaceAll(sc.spec, "$i", number)), []byte(`"app":"bench"`), []byte(labels), 1)
	return asking(body, cmp.Or(sc.milliCPU, 100))
}

// asking has a pod ask for that much.
func asking(pod []byte, milliCPU int) []byte {
	return bytes.Replace(pod, []byte(`"cpu":"100m"`), fmt.Appendf(nil, `"cpu":"%dm"`, milliCPU), 1)
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

// running makes pods that are on the nodes already, each of which takes milliCPU.
func running(nodes, onEach, milliCPU int) func(context.Context, *load) error {
	return func(ctx context.Context, l *load) error {
		_, err := l.many(ctx, nodes*onEach, 16, func(i int) request {
			body := bytes.Replace(pod(i,
				fmt.Sprintf(`,"terminationGracePeriodSeconds":0,"nodeName":"node-%d"`, i%nodes)), []byte(`"name":"p-`),
				[]byte(`"name":"running-`), 1)
			return request{method: "POST", path: podsPath, want: 201, body: asking(body, milliCPU)}
		})
		return err
	}
}

// full leaves no room on any node but what four pods there can make, which end at once.
func full(nodes int) func(context.Context, *load) error {
	return func(ctx context.Context, l *load) error {
		if err := l.do(ctx, first("")); err != nil {
			return err
		}
		return running(nodes, 4, 8000)(ctx, l)
	}
}

// first makes the priority class of that name.
func first(more string) request {
	return request{method: "POST", path: "/apis/scheduling.k8s.io/v1/priorityclasses", want: 201,
		body: []byte(`{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"first"},"value":1000` + more + `}`)}
}

// nominated makes a pod that waits for room on a node for as long as the scenario lasts: it is gated.
func nominated(ctx context.Context, l *load) error {
	gated := bytes.Replace(pod(0, `,"schedulingGates":[{"name":"example.com/wait"}]`), []byte(`"name":"p-0"`),
		[]byte(`"name":"nominated"`), 1)
	if err := l.do(ctx, request{method: "POST", path: podsPath, body: gated, want: 201}); err != nil {
		return err
	}
	return l.do(ctx, request{method: "PATCH", path: podsPath + "/nominated/status",
		contentType: "application/merge-patch+json", want: 200,
		body: []byte(`{"status":{"nominatedNodeName":"node-1"}}`)})
}

// waiting makes n pods that are tried first and fit nowhere.
func waiting(n int) func(context.Context, *load) error {
	return func(ctx context.Context, l *load) error {
		if err := l.do(ctx, first(`,"preemptionPolicy":"Never"`)); err != nil {
			return err
		}
		_, err := l.many(ctx, n, 16, func(i int) request {
			body := bytes.Replace(pod(i, never), []byte(`"name":"p-`), []byte(`"name":"waiting-`), 1)
			return request{method: "POST", path: podsPath, want: 201,
				body: bytes.Replace(body, []byte(`"app":"bench"`), []byte(`"app":"waiting"`), 1)}
		})
		return err
	}
}
