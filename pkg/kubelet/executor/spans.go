package executor

import (
	"errors"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/trace"
)

// imageBytes is how large an image is.
const imageBytes = attribute.Key("bonsai.image.bytes")

// did records a step of a pod that began at a time and ends now.
func (e *Executor) did(pod *corev1.Pod, step string, begun time.Time) {
	if e.cfg.Tracer.Records(pod.UID) {
		e.cfg.Tracer.Step(trace.Pod(pod), trace.Step{Name: "kubelet." + step, Start: begun, End: time.Now()})
	}
}

// didContainer records a step of one of a pod's containers, and why it failed.
func (e *Executor) didContainer(pod *corev1.Pod, c *corev1.Container, step string, begun time.Time, err error,
	more ...attribute.KeyValue) {
	if e.cfg.Tracer.Records(pod.UID) {
		e.cfg.Tracer.Step(trace.Pod(pod), trace.Step{Name: "kubelet." + step, Start: begun, End: time.Now(),
			Err: spanError(err), Attributes: append(more, semconv.K8SContainerName(c.Name))})
	}
}

// didPull records that a container has got its image, or not. Most are on the node already.
func didPull(e *Executor, pod *corev1.Pod, c *corev1.Container, begun time.Time, img *runtime.Image, err error) {
	if !e.cfg.Tracer.Records(pod.UID) {
		return
	}
	about := []attribute.KeyValue{semconv.ContainerImageName(c.Image)}
	if img != nil && img.Size > 0 && img.Size <= math.MaxInt64 {
		about = append(about, imageBytes.Int64(int64(img.Size)))
	}
	e.didContainer(pod, c, "pull", begun, err, about...)
}

// errUnfinished is a step that is done again, such as one that the end of the kubelet interrupted.
var errUnfinished = errors.New("not finished")

// spanError returns the text that a span has for an error: the reason of the container's status. The message is left
// out, since it may have parts of the pod's spec.
func spanError(err error) error {
	if err == nil {
		return nil
	}
	if se, ok := errors.AsType[*startError](err); ok {
		return errors.New(se.reason)
	}
	return errUnfinished
}
