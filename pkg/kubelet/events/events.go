// Package events tells users what the kubelet does to their pods, in upstream's words.
package events

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
)

// Recorder sends events about pods, their claims and the node.
type Recorder struct {
	node        string
	uid         func() types.UID
	broadcaster record.EventBroadcaster
	recorder    record.EventRecorder
}

// New returns a Recorder of the kubelet of a node. scheme knows pods. Its goroutines run until Close.
func New(scheme *runtime.Scheme, node string) *Recorder {
	b := record.NewBroadcaster()
	return &Recorder{node: node, uid: func() types.UID { return "" }, broadcaster: b,
		recorder: b.NewRecorder(scheme, corev1.EventSource{Component: "kubelet", Host: node})}
}

// FindNode sets how the UID of the node is found; it is empty until the node is registered. It is called before the
// first event about the node.
func (r *Recorder) FindNode(uid func() types.UID) { r.uid = uid }

// Start sends events to sink until the returned function is called.
func (r *Recorder) Start(sink record.EventSink) (stop func()) {
	return r.broadcaster.StartRecordingToSink(sink).Stop
}

// Limited returns a sink that sends events as fast as limiter lets it. Events wait in order; those that wait when ctx
// ends are not sent.
func Limited(ctx context.Context, sink record.EventSink, limiter flowcontrol.RateLimiter) record.EventSink {
	return limited{ctx, sink, limiter}
}

type limited struct {
	ctx     context.Context
	next    record.EventSink
	limiter flowcontrol.RateLimiter
}

// Create implements record.EventSink.
func (l limited) Create(e *corev1.Event) (*corev1.Event, error) {
	if err := l.limiter.Wait(l.ctx); err != nil {
		return nil, err
	}
	return l.next.Create(e)
}

// Update implements record.EventSink.
func (l limited) Update(e *corev1.Event) (*corev1.Event, error) {
	if err := l.limiter.Wait(l.ctx); err != nil {
		return nil, err
	}
	return l.next.Update(e)
}

// Patch implements record.EventSink.
func (l limited) Patch(e *corev1.Event, data []byte) (*corev1.Event, error) {
	if err := l.limiter.Wait(l.ctx); err != nil {
		return nil, err
	}
	return l.next.Patch(e, data)
}

// Close ends the Recorder, started or not. It is called once, after the last event.
func (r *Recorder) Close() { r.broadcaster.Shutdown() }

func (r *Recorder) send(pod *corev1.Pod, path, kind, reason, message string) {
	r.recorder.Event(&corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name,
		UID:             pod.UID,
		ResourceVersion: pod.ResourceVersion, FieldPath: path}, kind, reason, message)
}

// Pod sends an event about a pod. kind is Normal or Warning.
func (r *Recorder) Pod(pod *corev1.Pod, kind, reason, message string) {
	r.send(pod, "", kind, reason, message)
}

// Claim sends an event about a claim of a pod. kind is Normal or Warning.
func (r *Recorder) Claim(claim *corev1.PersistentVolumeClaim, kind, reason, message string) {
	r.recorder.Event(&corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1",
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
		ResourceVersion: claim.ResourceVersion}, kind, reason, message)
}

// Node sends an event about the node. kind is Normal or Warning.
func (r *Recorder) Node(kind, reason, message string) {
	r.recorder.Event(&corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: r.node, UID: r.uid()}, kind, reason,
		message)
}

// Container sends an event about one of a pod's containers. kind is Normal or Warning.
func (r *Recorder) Container(pod *corev1.Pod, container, kind, reason, message string) {
	list := "spec.containers"
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == container {
			list = "spec.initContainers"
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == container {
			list = "spec.ephemeralContainers"
		}
	}
	r.send(pod, fmt.Sprintf("%s{%s}", list, container), kind, reason, message)
}
