package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/trace"
)

// steps sends spans of a pod that began at a time and end now.
func steps(tracer *trace.Tracer, pod *corev1.Pod, begun time.Time, attributes []attribute.KeyValue, names ...string) {
	if !tracer.Records(pod.UID) {
		return
	}
	for _, name := range names {
		tracer.Step(trace.Pod(pod), trace.Step{Name: "kubelet." + name, Start: begun, End: time.Now(),
			Attributes: attributes})
	}
}

// podLife is what the nodes know of a pod.
type podLife struct{ started, ended bool }

// playKubelets plays all nodes until ctx ends: a pod on a node serves as soon as it is seen, and is gone as soon as it
// is to end. With a tracer it sends the spans that a kubelet sends for a pod with one container.
func playKubelets(ctx context.Context, l *load, tracer *trace.Tracer) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(workers + 1)
	lives := map[string]*podLife{}
	err := l.follow(ctx, podsPath, func(event []byte) bool {
		var e struct {
			Type   string
			Object corev1.Pod
		}
		if json.Unmarshal(event, &e) != nil || e.Object.Spec.NodeName == "" {
			return false
		}
		pod, uid := &e.Object, string(e.Object.UID)
		life := lives[uid]
		if life == nil {
			life = &podLife{}
			lives[uid] = life
		}
		switch {
		case e.Type == "DELETED":
			delete(lives, uid)
		case pod.DeletionTimestamp != nil && !life.ended:
			life.ended = true
			g.Go(func() error { return endPod(ctx, l, tracer, pod) })
		case pod.DeletionTimestamp == nil && !life.started:
			life.started = true
			g.Go(func() error { return startPod(ctx, l, tracer, pod) })
		}
		return false
	})
	if waited := g.Wait(); err == nil {
		err = waited
	}
	if ctx.Err() != nil {
		return nil // what they were for is done
	}
	return err
}

func startPod(ctx context.Context, l *load, tracer *trace.Tracer, pod *corev1.Pod) error {
	begun := time.Now()
	steps(tracer, pod, begun, nil, "seen", "admit", "volumes", "sandbox")
	steps(tracer, pod, begun, []attribute.KeyValue{semconv.K8SContainerName(pod.Spec.Containers[0].Name),
		semconv.ContainerImageName(pod.Spec.Containers[0].Image)}, "pull", "create", "start")
	err := l.do(ctx, request{method: "PATCH", path: podsPath + "/" + pod.Name + "/status", body: []byte(ready),
		contentType: "application/merge-patch+json", want: 200})
	steps(tracer, pod, begun, nil, "status")
	if tracer.Records(pod.UID) {
		tracer.Reached(trace.Pod(pod), time.Now(), semconv.K8SPodStatusPhaseKey.String("Running"))
	}
	return err
}

func endPod(ctx context.Context, l *load, tracer *trace.Tracer, pod *corev1.Pod) error {
	begun := time.Now()
	steps(tracer, pod, begun, nil, "stop", "unsandbox", "cleanup")
	err := l.do(ctx, request{method: "DELETE", path: podsPath + "/" + pod.Name, want: 200,
		body: fmt.Appendf(nil, `{"gracePeriodSeconds":0,"preconditions":{"uid":%q}}`, pod.UID)})
	steps(tracer, pod, begun, nil, "delete")
	return err
}
