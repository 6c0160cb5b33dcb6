// Package host is what the kubelet's HTTPS API shows and does on the node: running pods, streams into them, commands
// and logs.
package host

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/runtime"
)

// Runtime is the container runtime.
type Runtime interface {
	Pods(ctx context.Context) ([]*runtime.PodStatus, error)
	PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error)
	// Exec, Attach and PortForward return the URL at which the runtime serves the streams.
	Exec(ctx context.Context, id string, command []string, s runtime.Streams) (string, error)
	Attach(ctx context.Context, id string, s runtime.Streams) (string, error)
	PortForward(ctx context.Context, sandboxID string, ports []int32) (string, error)
	// ExecSync runs a command to its end, no longer than timeout; 0: as long as ctx.
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (runtime.ExecResult, error)
	// Checkpoint writes all that a container is into an archive, no longer than timeout; 0: the runtime's usual time.
	Checkpoint(ctx context.Context, id, path string, timeout time.Duration) error
}

// Host answers for the node. It keeps nothing; everything is required.
type Host struct {
	Runtime Runtime
	// Checkpoints is the directory of checkpoints, <root>/checkpoints.
	Checkpoints string
	Now         func() time.Time
	// LogPath is the log file of a container.
	LogPath func(p *runtime.PodStatus, c *runtime.Container) string
	// ReadLog writes a log file as the options say. While one is followed, running is asked whether the container still
	// writes.
	ReadLog func(ctx context.Context, path string, o *corev1.PodLogOptions, running func(context.Context) (bool, error),
		stdout, stderr io.Writer) error
}

// RunningPods returns what runs according to the runtime.
func (h Host) RunningPods(ctx context.Context) ([]*corev1.Pod, error) {
	list, err := h.Runtime.Pods(ctx)
	if err != nil {
		return nil, err
	}
	var out []*corev1.Pod
	for _, p := range list {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID}}
		for _, c := range p.Containers {
			if c.State == runtime.StateRunning {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: c.Name, Image: c.ImageID})
			}
		}
		if len(pod.Spec.Containers) > 0 {
			out = append(out, pod)
		}
	}
	return out, nil
}

// running finds a pod's running container.
func (h Host) running(ctx context.Context, pod *corev1.Pod, container string) (string, error) {
	rt, err := h.Runtime.PodStatus(ctx, pod.UID)
	if err != nil {
		return "", err
	}
	c := rt.Container(container)
	if c == nil || c.State != runtime.StateRunning {
		return "", fmt.Errorf("container not found (%q)", container)
	}
	return c.ID.ID, nil
}

// Exec opens streams to a command in a container.
func (h Host) Exec(ctx context.Context, pod *corev1.Pod, container string, command []string,
	s runtime.Streams) (*url.URL, error) {
	id, err := h.running(ctx, pod, container)
	if err != nil {
		return nil, err
	}
	u, err := h.Runtime.Exec(ctx, id, command, s)
	return parsed(u, err)
}

// Attach opens streams to a container's main process; whether they are a terminal is the container's to say.
func (h Host) Attach(ctx context.Context, pod *corev1.Pod, container string, s runtime.Streams) (*url.URL, error) {
	id, err := h.running(ctx, pod, container)
	if err != nil {
		return nil, err
	}
	if c := runtime.ContainerSpec(pod, container); c != nil {
		s.TTY = c.TTY
	}
	u, err := h.Runtime.Attach(ctx, id, s)
	return parsed(u, err)
}

// PortForward opens streams to ports of a pod.
func (h Host) PortForward(ctx context.Context, pod *corev1.Pod, ports []int32) (*url.URL, error) {
	rt, err := h.Runtime.PodStatus(ctx, pod.UID)
	if err != nil {
		return nil, err
	}
	s := rt.Sandbox()
	if s == nil || !s.Ready {
		return nil, fmt.Errorf("pod not found (%q)", pod.Name+"_"+pod.Namespace)
	}
	u, err := h.Runtime.PortForward(ctx, s.ID, ports)
	return parsed(u, err)
}

func parsed(u string, err error) (*url.URL, error) {
	if err != nil {
		return nil, err
	}
	return url.Parse(u)
}

// Run runs a command to its end and returns its output.
func (h Host) Run(ctx context.Context, pod *corev1.Pod, container string, command []string) ([]byte, error) {
	id, err := h.running(ctx, pod, container)
	if err != nil {
		return nil, err
	}
	r, err := h.Runtime.ExecSync(ctx, id, command, 0)
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("command exited with %d", r.ExitCode)
	}
	return append(r.Stdout, r.Stderr...), err
}

// ContainerLogs writes a container's log. An error before the first byte is shown to the client as it is.
func (h Host) ContainerLogs(ctx context.Context, pod *corev1.Pod, container string, o *corev1.PodLogOptions, stdout,
	stderr io.Writer) error {
	if err := waitsWithoutLog(pod, container, o.Previous); err != nil {
		return err
	}
	rt, err := h.Runtime.PodStatus(ctx, pod.UID)
	if err != nil {
		return err
	}
	c := rt.Container(container)
	if o.Previous {
		if c, err = previous(pod, rt, container); err != nil {
			return err
		}
	}
	if c == nil {
		return fmt.Errorf("container %q in pod %q is not available", container, pod.Name)
	}
	path := c.LogPath
	if path == "" {
		rt.Name, rt.Namespace = pod.Name, pod.Namespace
		path = h.LogPath(rt, c)
	}
	id := c.ID.ID
	alive := func(ctx context.Context) (bool, error) {
		rt, err := h.Runtime.PodStatus(ctx, pod.UID)
		if err != nil {
			return false, err
		}
		for _, x := range rt.Containers {
			if x.ID.ID == id {
				return x.State == runtime.StateRunning || x.State == runtime.StateCreated && !x.Stuck, nil
			}
		}
		return false, nil
	}
	return h.ReadLog(ctx, filepath.Clean(path), o, alive, stdout, stderr)
}

// waitsWithoutLog tells why a container has no log yet, in upstream's words.
func waitsWithoutLog(pod *corev1.Pod, container string, previous bool) error {
	var all []corev1.ContainerStatus
	all = append(append(append(all, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...),
		pod.Status.EphemeralContainerStatuses...)
	for _, s := range all {
		if s.Name != container {
			continue
		}
		w := s.State.Waiting
		switch {
		case previous && s.LastTerminationState.Terminated == nil:
			return fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
		case w == nil || s.LastTerminationState.Terminated != nil:
			return nil
		case w.Reason == "ErrImagePull" || w.Reason == "ImagePullBackOff":
			return fmt.Errorf("container %q in pod %q is waiting to start: trying and failing to pull image", container,
				pod.Name)
		default:
			return fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod.Name, w.Reason)
		}
	}
	return nil
}

// previous returns the container before the present one: the last ended one in the pod's status, else the runtime's.
func previous(pod *corev1.Pod, rt *runtime.PodStatus, container string) (*runtime.Container, error) {
	if id, err := runtime.ParseContainerID(lastEnded(pod, container)); err == nil {
		for i := range rt.Containers {
			if c := &rt.Containers[i]; c.ID.ID == id.ID {
				return c, nil
			}
		}
		return nil, fmt.Errorf("unable to retrieve container logs for %s", id)
	}
	c := rt.Previous(container)
	if now := rt.Container(container); c == nil && now != nil && now.State == runtime.StateExited &&
		comesAgain(pod, container) {
		c = now // it waits for its restart: the one before is this one
	}
	if c == nil {
		return nil, fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
	}
	return c, nil
}

// lastEnded is the id of a container's last life that ended, as the pod's status tells it; "" if it does not.
func lastEnded(pod *corev1.Pod, container string) string {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses,
		pod.Status.EphemeralContainerStatuses} {
		for _, s := range list {
			if end := s.LastTerminationState.Terminated; s.Name == container && end != nil {
				return end.ContainerID
			}
		}
	}
	return ""
}

func comesAgain(pod *corev1.Pod, container string) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == container {
			return s.State.Waiting != nil && s.LastTerminationState.Terminated != nil
		}
	}
	return false
}
