package run

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"bonsai/pkg/kubectl/cli"
	"bonsai/pkg/kubectl/pods"
	"bonsai/pkg/kubectl/resource"
	"bonsai/pkg/kubectl/write"
)

// attachTo waits for pod to run, connects the streams to its container and, with --rm, deletes it afterwards. With
// --restart=Never the exit code is that of the container.
func (o *Options) attachTo(ctx context.Context, pod *corev1.Pod) (err error) {
	m, err := o.Client.MappingFor(corev1.SchemeGroupVersion.WithKind("Pod"))
	if err != nil {
		return err
	}
	if o.rm {
		defer func() {
			if e := o.remove(ctx, m, pod); err == nil {
				err = e
			}
		}()
	}
	running, err := o.await(ctx, m, pod, o.runningTimeout, podStarted)
	if err != nil {
		return err
	}
	container := running.Spec.Containers[0].Name
	// What the container said before anyone listened is in its log; the session shows the rest.
	said, err := o.logs(ctx, m, running, container, 0)
	if podOver(running) {
		if err != nil {
			return err
		}
	} else if err := o.session(ctx, running, container); ctx.Err() != nil {
		return cli.Cause(ctx)
	} else if err != nil {
		fmt.Fprintf(o.ErrOut, "warning: couldn't attach to pod/%s, falling back to streaming logs: %v\n", running.Name,
			err)
		if _, err := o.logs(ctx, m, running, container, said); err != nil {
			return err
		}
	}
	if o.spec.restart != string(corev1.RestartPolicyNever) {
		return nil
	}
	return o.exit(ctx, m, running, container)
}

// session connects the streams to the container until it ends.
func (o *Options) session(ctx context.Context, pod *corev1.Pod, container string) error {
	config, err := o.factory.RESTConfig()
	if err != nil {
		return err
	}
	a := pods.Attachment{Session: pods.Session{
		Streams: o.Raw(), Namespace: pod.Namespace, Pod: pod.Name, Container: container, Stdin: o.spec.stdin,
		TTY: o.spec.tty,
	}, Quiet: o.quiet, DetachKeys: o.detachKeys}
	return a.Run(ctx, o.Client, config, pod)
}

// podStarted reports whether there is something to attach to, or the pod is already over.
func podStarted(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return true
	case corev1.PodRunning:
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return true
			}
		}
	}
	return false
}

// podOver reports whether no container of the pod runs any more.
func podOver(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (o *Options) await(ctx context.Context, m *meta.RESTMapping, pod *corev1.Pod, timeout time.Duration,
	done func(*corev1.Pod) bool) (*corev1.Pod, error) {
	var seen *corev1.Pod
	err := write.Await(ctx, o.Client, m, pod.Namespace, pod.Name, timeout,
		func(u *unstructured.Unstructured) (bool, error) {
			if u == nil || u.GetUID() != pod.UID {
				return false, fmt.Errorf("pod %s/%s was deleted", pod.Namespace, pod.Name)
			}
			seen = &corev1.Pod{}
			if err := resource.FromUnstructured(u, seen); err != nil {
				return false, err
			}
			return done(seen), nil
		})
	return seen, err
}

// exit waits for the pod's end and returns the exit code of its container as an error, nil for 0.
func (o *Options) exit(ctx context.Context, m *meta.RESTMapping, pod *corev1.Pod, container string) error {
	over, err := o.await(ctx, m, pod, 0, podOver)
	if err != nil {
		return err
	}
	if over.Status.Phase == corev1.PodSucceeded {
		return nil
	}
	for _, s := range over.Status.ContainerStatuses {
		if t := s.State.Terminated; s.Name == container && t != nil && t.ExitCode != 0 {
			return &cli.ExitError{Code: int(t.ExitCode), Err: &terminated{over, t}}
		}
	}
	return fmt.Errorf("pod %s/%s failed with reason %q: %s", over.Namespace, over.Name, over.Status.Reason,
		over.Status.Message)
}

// terminated is the end of a container with a code other than 0.
type terminated struct {
	pod   *corev1.Pod
	state *corev1.ContainerStateTerminated
}

func (e *terminated) Error() string {
	return fmt.Sprintf("pod %s/%s terminated (%s)\n%s", e.pod.Namespace, e.pod.Name, e.state.Reason, e.state.Message)
}

// Plain tells that the message stands without "error: ".
func (e *terminated) Plain() bool { return true }

// logs copies what the container has said so far except for the first skip bytes, and returns how many bytes it has
// said.
func (o *Options) logs(ctx context.Context, m *meta.RESTMapping, pod *corev1.Pod, container string, skip int) (int,
	error) {
	data, err := pods.Log(ctx, o.Client, pod, container)
	if err != nil {
		return 0, err
	}
	_, err = o.Raw().Out.Write(data[min(skip, len(data)):])
	return len(data), err
}

// remove serves --rm. It works although ctx has ended: an interrupted session must not leave its pod.
func (o *Options) remove(ctx context.Context, m *meta.RESTMapping, pod *corev1.Pod) error {
	ctx = context.WithoutCancel(ctx)
	opts := o.deletion.Options()
	if o.deletion.Force {
		opts.GracePeriodSeconds = new(int64(0))
	}
	if _, err := o.Client.Delete(ctx, m, pod.Namespace, pod.Name, opts); err != nil {
		return err
	}
	if !o.quiet {
		fmt.Fprintf(o.Out, "pod %q deleted from %s namespace\n", pod.Name, pod.Namespace)
	}
	if !o.deletion.Wait {
		return nil
	}
	return write.Await(ctx, o.Client, m, pod.Namespace, pod.Name, o.deletion.Timeout,
		func(u *unstructured.Unstructured) (bool, error) {
			return u == nil || u.GetUID() != pod.UID, nil
		})
}
