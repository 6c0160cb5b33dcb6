package main

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/proxy"
	"bonsai/pkg/trace"
)

// recordArrivals records, for each pod whose endpoint is in the kernel now, how long that took since the change that
// the pod's slice tells of.
func recordArrivals(tracer *trace.Tracer, all []proxy.Arrival, at time.Time) {
	for _, a := range all {
		if !tracer.Records(a.UID) {
			continue
		}
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name, pod.UID, pod.Spec.NodeName = a.Pod.Namespace, a.Pod.Name, a.UID, a.Node
		tracer.Step(trace.Pod(pod), trace.Step{Name: "kube-proxy.endpoint", Start: a.At, End: at,
			Attributes: []attribute.KeyValue{attribute.String("k8s.service.name", a.Service.Name)}})
	}
}
