package executor

import (
	"context"
	"errors"
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"
	oteltrace "go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/trace"
)

// recorder records the steps of pods as spans.
type recorder struct{ cfg *Config }

// imageBytes is how large an image is.
const imageBytes = attribute.Key("bonsai.image.bytes")

// did records a step of a pod that began at a time and ends now.
func (r recorder) did(pod *corev1.Pod, step string, begun time.Time) {
	if r.cfg.Tracer.Records(pod.UID) {
		r.cfg.Tracer.Step(trace.Pod(pod), trace.Step{Name: "kubelet." + step, Start: begun, End: time.Now()})
	}
}

// spanID returns an id for a span of a pod whose parts are recorded before it is; none if it is not recorded.
func (r recorder) spanID(pod *corev1.Pod) (none oteltrace.SpanID) {
	if r.cfg.Tracer.Records(pod.UID) {
		return trace.NewID()
	}
	return none
}

// didAs records a step of a pod that began at a time and ends now, with the id of spanID.
func (r recorder) didAs(pod *corev1.Pod, step string, begun time.Time, id oteltrace.SpanID) {
	if r.cfg.Tracer.Records(pod.UID) {
		r.cfg.Tracer.Step(trace.Pod(pod), trace.Step{Name: "kubelet." + step, Start: begun, End: time.Now(), ID: id})
	}
}

// clockSteps is how far the clock by which the kernel notes the times of files may be behind.
const clockSteps = 20 * time.Millisecond

// didSandbox records that a pod has got its sandbox, and the part of the time that its network took. Times outside of
// the sandbox's are not of this network.
func (r recorder) didSandbox(pod *corev1.Pod, id string, begun, ended time.Time) {
	if !r.cfg.Tracer.Records(pod.UID) {
		return
	}
	o := trace.Pod(pod)
	sandbox := r.cfg.Tracer.Step(o, trace.Step{Name: "kubelet.sandbox", Start: begun, End: ended})
	if r.cfg.NetworkTimes == nil || pod.Spec.HostNetwork {
		return
	}
	from, to, ok := r.cfg.NetworkTimes(id)
	if ok && !from.Before(begun.Add(-clockSteps)) && !to.After(ended) {
		if from.Before(begun) {
			from = begun
		}
		r.cfg.Tracer.Step(o, trace.Step{Name: "kubelet.network", Start: from, End: to, Parent: sandbox})
	}
}

// grace is how long a hook may run, in seconds.
const grace = attribute.Key("bonsai.hook.grace_seconds")

// didPreStop records that a container's preStop hook ran, for how long it might, and whether it failed. ctx is that of
// the hook, and span the one of the pod's end, if it ends.
func (r recorder) didPreStop(ctx context.Context, pod *corev1.Pod, c *corev1.Container, begun time.Time,
	span oteltrace.SpanID, err error) {
	if !r.cfg.Tracer.Records(pod.UID) {
		return
	}
	about := []attribute.KeyValue{semconv.K8SContainerName(c.Name)}
	if end, ok := ctx.Deadline(); ok {
		about = append(about, grace.Int64(int64(end.Sub(begun).Round(time.Second)/time.Second)))
	}
	switch {
	case err == nil:
	case errors.Is(ctx.Err(), context.Canceled):
		err = errUnfinished
	default:
		err = errors.New("FailedPreStopHook")
	}
	r.cfg.Tracer.Step(trace.Pod(pod), trace.Step{Name: "kubelet.prestop", Start: begun, End: time.Now(), Err: err,
		Attributes: about, Parent: span})
}

// didContainer records a step of one of a pod's containers, and why it failed.
func (r recorder) didContainer(pod *corev1.Pod, c *corev1.Container, step string, begun time.Time, err error,
	more ...attribute.KeyValue) {
	if r.cfg.Tracer.Records(pod.UID) {
		r.cfg.Tracer.Step(trace.Pod(pod), trace.Step{Name: "kubelet." + step, Start: begun, End: time.Now(),
			Err: spanError(err), Attributes: append(more, semconv.K8SContainerName(c.Name))})
	}
}

// didPull records that a container has got its image, or not. Most are on the node already.
func (r recorder) didPull(pod *corev1.Pod, c *corev1.Container, begun time.Time, img *runtime.Image, err error) {
	if !r.cfg.Tracer.Records(pod.UID) {
		return
	}
	about := []attribute.KeyValue{semconv.ContainerImageName(c.Image)}
	if img != nil && img.Size > 0 && img.Size <= math.MaxInt64 {
		about = append(about, imageBytes.Int64(int64(img.Size)))
	}
	r.didContainer(pod, c, "pull", begun, err, about...)
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
