package debug

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/write"
)

// attachTo waits for the container and connects the streams to it. It prints the log first, because that has the output
// from before the connection, which of a short command may be all of it. If the container has ended or cannot be
// attached to, the log is all that can be shown.
func (o *Options) attachTo(ctx context.Context, pod *corev1.Pod, container string) error {
	state, err := o.await(ctx, pod, container)
	if err != nil {
		return err
	}
	said, err := o.log(ctx, pod, container, 0)
	if state.Terminated != nil {
		return err
	}
	a := pods.Attachment{Session: pods.Session{Streams: o.Raw(), Namespace: pod.Namespace, Pod: pod.Name,
		Container: container, Stdin: o.wish.stdin, TTY: o.wish.tty}, Quiet: o.quiet}
	err = a.Run(ctx, o.client, o.config, pod)
	if ctx.Err() != nil {
		return cli.Cause(ctx)
	}
	if err == nil {
		return nil
	}
	fmt.Fprintf(o.ErrOut, "warning: couldn't attach to pod/%s, falling back to streaming logs: %v\n", pod.Name, err)
	_, err = o.log(ctx, pod, container, said)
	return err
}

// await waits until the container runs or has run, without a limit of time. It warns why the container waits, such as
// an image that cannot be pulled, once for each message.
func (o *Options) await(ctx context.Context, pod *corev1.Pod, container string) (corev1.ContainerState, error) {
	var state corev1.ContainerState
	told := ""
	err := write.Await(ctx, o.client, pods.Mapping(), pod.Namespace, pod.Name, 0,
		func(u *unstructured.Unstructured) (bool, error) {
			if u == nil || u.GetUID() != pod.UID {
				return false, fmt.Errorf("pod %s/%s was deleted", pod.Namespace, pod.Name)
			}
			seen, err := decode(u, nil)
			if err != nil {
				return false, err
			}
			state = stateOf(seen, container)
			if w := state.Waiting; w != nil && w.Message != "" && w.Message != told {
				told = w.Message
				fmt.Fprintf(o.ErrOut, "Warning: container %s: %s\n", container, w.Message)
			}
			return state.Running != nil || state.Terminated != nil, nil
		})
	return state, err
}

// stateOf returns the state of a container, ephemeral container or init container; empty if the pod reports none.
func stateOf(pod *corev1.Pod, name string) corev1.ContainerState {
	s := &pod.Status
	for _, c := range slices.Concat(s.ContainerStatuses, s.EphemeralContainerStatuses, s.InitContainerStatuses) {
		if c.Name == name {
			return c.State
		}
	}
	return corev1.ContainerState{}
}

// log prints the container's output so far without its first skip bytes, which were printed before, and returns its
// whole length in bytes.
func (o *Options) log(ctx context.Context, pod *corev1.Pod, container string, skip int) (int, error) {
	data, err := pods.Log(ctx, o.client, pod, container)
	if err != nil {
		return 0, err
	}
	_, err = o.Raw().Out.Write(data[min(skip, len(data)):])
	return len(data), err
}
