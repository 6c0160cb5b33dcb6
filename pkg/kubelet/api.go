package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/cri"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/server"
)

// View is what the kubelet's HTTPS API shows of the node: it implements server's Pods, Runtime and Logs.
type View struct{ k *Kubelet }

var (
	_ server.Pods    = View{}
	_ server.Runtime = View{}
	_ server.Logs    = View{}
)

// View returns the view for the HTTPS API.
func (k *Kubelet) View() View { return View{k} }

// Pods implements server.Pods.
func (v View) Pods() []*corev1.Pod {
	v.k.mu.Lock()
	pods := make([]*corev1.Pod, 0, len(v.k.pods))
	for _, p := range v.k.pods {
		pods = append(pods, p)
	}
	v.k.mu.Unlock()
	for i, p := range pods {
		pods[i] = v.k.withStatus(p)
	}
	return pods
}

// Pod implements server.Pods.
func (v View) Pod(namespace, name string) (*corev1.Pod, bool) {
	v.k.mu.Lock()
	var found *corev1.Pod
	for _, p := range v.k.pods {
		if p.Namespace == namespace && p.Name == name && (found == nil || found.DeletionTimestamp != nil) {
			found = p
		}
	}
	v.k.mu.Unlock()
	if found == nil {
		return nil, false
	}
	return v.k.withStatus(found), true
}

// RunningPods implements server.Pods.
func (v View) RunningPods(ctx context.Context) ([]*corev1.Pod, error) {
	list, err := v.k.cri.Pods(ctx)
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
func (v View) running(ctx context.Context, pod *corev1.Pod, container string) (string, error) {
	rt, err := v.k.cri.PodStatus(ctx, pod.UID)
	if err != nil {
		return "", err
	}
	c := rt.Container(container)
	if c == nil || c.State != runtime.StateRunning {
		return "", fmt.Errorf("container not found (%q)", container)
	}
	return c.ID.ID, nil
}

// Exec implements server.Runtime.
func (v View) Exec(ctx context.Context, pod *corev1.Pod, container string, command []string, s server.Streams) (*url.URL, error) {
	id, err := v.running(ctx, pod, container)
	if err != nil {
		return nil, err
	}
	u, err := v.k.cri.Exec(ctx, id, command, cri.Streams(s))
	return parsed(u, err)
}

// Attach implements server.Runtime.
func (v View) Attach(ctx context.Context, pod *corev1.Pod, container string, s server.Streams) (*url.URL, error) {
	id, err := v.running(ctx, pod, container)
	if err != nil {
		return nil, err
	}
	if c := runtime.ContainerSpec(pod, container); c != nil {
		s.TTY = c.TTY
	}
	u, err := v.k.cri.Attach(ctx, id, cri.Streams(s))
	return parsed(u, err)
}

// PortForward implements server.Runtime.
func (v View) PortForward(ctx context.Context, pod *corev1.Pod, ports []int32) (*url.URL, error) {
	rt, err := v.k.cri.PodStatus(ctx, pod.UID)
	if err != nil {
		return nil, err
	}
	s := rt.Sandbox()
	if s == nil || !s.Ready {
		return nil, fmt.Errorf("pod not found (%q)", pod.Name+"_"+pod.Namespace)
	}
	u, err := v.k.cri.PortForward(ctx, s.ID, ports)
	return parsed(u, err)
}

func parsed(u string, err error) (*url.URL, error) {
	if err != nil {
		return nil, err
	}
	return url.Parse(u)
}

// Run implements server.Runtime.
func (v View) Run(ctx context.Context, pod *corev1.Pod, container string, command []string) ([]byte, error) {
	id, err := v.running(ctx, pod, container)
	if err != nil {
		return nil, err
	}
	r, err := v.k.cri.ExecSync(ctx, id, command, 0)
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("command exited with %d", r.ExitCode)
	}
	return append(r.Stdout, r.Stderr...), err
}

// ContainerLogs implements server.Logs.
func (v View) ContainerLogs(ctx context.Context, pod *corev1.Pod, container string, o *corev1.PodLogOptions, stdout, stderr io.Writer) error {
	if err := waitsWithoutLog(pod, container, o.Previous); err != nil {
		return err
	}
	rt, err := v.k.cri.PodStatus(ctx, pod.UID)
	if err != nil {
		return err
	}
	c := rt.Container(container)
	if o.Previous {
		c = rt.Previous(container)
		if now := rt.Container(container); c == nil && now != nil && now.State == runtime.StateExited && comesAgain(pod, container) {
			c = now // it waits for its restart: the one before is this one
		}
		if c == nil {
			return fmt.Errorf("previous terminated container %q in pod %q not found", container, pod.Name)
		}
	}
	if c == nil {
		return fmt.Errorf("container %q in pod %q is not available", container, pod.Name)
	}
	path := c.LogPath
	if path == "" {
		path = logs.Path(v.k.cfg.Logs.PodDir(pod.Namespace, pod.Name, pod.UID), container, c.Attempt)
	}
	id := c.ID.ID
	alive := func(ctx context.Context) (bool, error) {
		rt, err := v.k.cri.PodStatus(ctx, pod.UID)
		if err != nil {
			return false, err
		}
		for _, x := range rt.Containers {
			if x.ID.ID == id {
				return x.State == runtime.StateRunning || x.State == runtime.StateCreated, nil
			}
		}
		return false, nil
	}
	return logs.Read(ctx, filepath.Clean(path), logs.OptionsOf(o, time.Now()), alive, stdout, stderr)
}

// waitsWithoutLog tells why a container has no log yet, in upstream's words.
func waitsWithoutLog(pod *corev1.Pod, container string, previous bool) error {
	var all []corev1.ContainerStatus
	all = append(append(append(all, pod.Status.InitContainerStatuses...), pod.Status.ContainerStatuses...), pod.Status.EphemeralContainerStatuses...)
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
			return fmt.Errorf("container %q in pod %q is waiting to start: trying and failing to pull image", container, pod.Name)
		default:
			return fmt.Errorf("container %q in pod %q is waiting to start: %s", container, pod.Name, w.Reason)
		}
	}
	return nil
}

func comesAgain(pod *corev1.Pod, container string) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == container {
			return s.State.Waiting != nil && s.LastTerminationState.Terminated != nil
		}
	}
	return false
}

// Rotate keeps the logs of running containers small until ctx ends.
func (k *Kubelet) Rotate(ctx context.Context, maxSize int64, maxFiles int) error {
	r := &logs.Rotator{MaxSize: maxSize, MaxFiles: maxFiles, Runtime: k.cri, Files: k.logFiles, Now: time.Now, Log: k.log}
	if err := r.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("rotate logs: %w", err)
	}
	return nil
}

func (k *Kubelet) logFiles(ctx context.Context) ([]logs.File, error) {
	pods, err := k.cri.Pods(ctx)
	if err != nil {
		return nil, err
	}
	var out []logs.File
	for _, p := range pods {
		for _, c := range p.Containers {
			if c.State == runtime.StateRunning {
				out = append(out, logs.File{ContainerID: c.ID.ID,
					Path: logs.Path(k.cfg.Logs.PodDir(p.Namespace, p.Name, p.UID), c.Name, c.Attempt)})
			}
		}
	}
	return out, nil
}

// NodeIPs are the node's addresses, the primary one first.
func (k *Kubelet) NodeIPs() []string { return k.node.HostIPs() }
