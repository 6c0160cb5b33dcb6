package kubelet

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"bonsai/pkg/kubelet/client"
)

// recorder sends events about pods, in upstream's words.
type recorder struct {
	recorder record.EventRecorder
	begin    func(ctx context.Context) func()
}

func newRecorder(client *client.Client, node string) *recorder {
	r := &recorder{}
	b := record.NewBroadcaster()
	r.recorder = b.NewRecorder(client.Scheme(), corev1.EventSource{Component: "kubelet", Host: node})
	r.begin = func(ctx context.Context) func() {
		w := b.StartRecordingToSink(client.Events(ctx))
		return func() { w.Stop(); b.Shutdown() }
	}
	return r
}

// start sends events until the returned function is called.
func (r *recorder) start(ctx context.Context) func() { return r.begin(ctx) }

func (r *recorder) send(pod *corev1.Pod, path, kind, reason, message string) {
	r.recorder.Event(&corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		ResourceVersion: pod.ResourceVersion, FieldPath: path}, kind, reason, message)
}

// Pod implements executor.Events.
func (r *recorder) Pod(pod *corev1.Pod, kind, reason, message string) {
	r.send(pod, "", kind, reason, message)
}

// Container implements executor.Events.
func (r *recorder) Container(pod *corev1.Pod, container, kind, reason, message string) {
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
