package write

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// bindTries is how often a binding is sent at most.
const bindTries = 4

// Bind assigns pod to node. It tries again where the server could not answer, or had no time, until ctx ends: the
// choice is still good. Other errors are the API server's: a conflict says that the pod has another node or is being
// deleted.
func (w *Writer) Bind(ctx context.Context, pod *corev1.Pod, node string) error {
	err := w.bind(ctx, pod, node)
	for try, pause := 1, w.pause; try < bindTries && transient(err); try, pause = try+1, 2*pause {
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
		if err = w.bind(ctx, pod, node); apierrors.IsConflict(err) && w.bound(ctx, pod, node) {
			return nil // an earlier try was carried out, and only its answer was lost
		}
	}
	return err
}

func (w *Writer) bind(ctx context.Context, pod *corev1.Pod, node string) error {
	return w.pods.Send(ctx, pod.Namespace, pod.Name, "binding", "Binding", &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	})
}

// bound reports whether the pod is on the node.
func (w *Writer) bound(ctx context.Context, pod *corev1.Pod, node string) bool {
	now, err := w.pods.Get(ctx, pod.Namespace, pod.Name)
	return err == nil && now.UID == pod.UID && now.Spec.NodeName == node
}

// transient reports whether the same request may succeed soon.
func transient(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || utilnet.IsConnectionRefused(err) ||
		utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)
}
