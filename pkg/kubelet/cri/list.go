package cri

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/runtime"
)

// Pods lists every pod that has a sandbox or a container, with the fields that lists have: ids, names, attempts and
// states. It takes two calls, whatever the number of pods.
func (c *Client) Pods(ctx context.Context) ([]*runtime.PodStatus, error) {
	byUID, err := c.list(ctx, nil)
	if err != nil {
		return nil, err
	}
	out := make([]*runtime.PodStatus, 0, len(byUID))
	for _, p := range byUID {
		out = append(out, p)
	}
	c.memory.retain(out)
	return out, nil
}

// PodStatus returns everything that the runtime knows about one pod; an unknown pod has no sandboxes and no containers.
// What disappears between the list and the details is left out.
func (c *Client) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	byUID, err := c.list(ctx, map[string]string{labelPodUID: string(uid)})
	if err != nil {
		return nil, err
	}
	p := byUID[uid]
	if p == nil {
		return &runtime.PodStatus{UID: uid}, nil
	}
	if err := c.fillSandboxes(ctx, p); err != nil {
		return nil, err
	}
	kept := p.Containers[:0]
	for _, ct := range p.Containers {
		full, err := c.containerStatus(ctx, ct)
		if notFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("status of container %s: %w", ct.ID.ID, err)
		}
		kept = append(kept, full)
	}
	p.Containers = kept
	return p, nil
}

func (c *Client) list(ctx context.Context, labels map[string]string) (map[types.UID]*runtime.PodStatus, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	sandboxes, err := c.runtime.ListPodSandbox(ctx,
		&runtimeapi.ListPodSandboxRequest{Filter: &runtimeapi.PodSandboxFilter{LabelSelector: labels}})
	if err != nil {
		return nil, fmt.Errorf("list pod sandboxes: %w", err)
	}
	containers, err := c.runtime.ListContainers(ctx,
		&runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{LabelSelector: labels}})
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	byUID := map[types.UID]*runtime.PodStatus{}
	pod := func(l map[string]string) *runtime.PodStatus {
		uid := types.UID(l[labelPodUID])
		if uid == "" {
			return nil
		}
		if byUID[uid] == nil {
			byUID[uid] = &runtime.PodStatus{UID: uid, Name: l[labelPodName],
				Namespace: l[labelPodNamespace]}
		}
		return byUID[uid]
	}
	newest := map[types.UID]runtime.Sandbox{}
	for _, s := range sandboxes.Items {
		if p := pod(s.Labels); p != nil {
			sb := runtime.Sandbox{ID: s.Id, Attempt: s.GetMetadata().GetAttempt(),
				Ready:   s.State == runtimeapi.PodSandboxState_SANDBOX_READY,
				Handler: s.RuntimeHandler, CreatedAt: time.Unix(0, s.CreatedAt)}
			if n, ok := newest[p.UID]; !ok || byAge(sb, n) <= 0 {
				newest[p.UID], p.Annotations = sb, s.Annotations
			}
			p.Sandboxes = append(p.Sandboxes, sb)
		}
	}
	for _, ct := range containers.Containers {
		if p := pod(ct.Labels); p != nil {
			p.Containers = append(p.Containers, c.listed(ct))
		}
	}
	for _, p := range byUID {
		slices.SortStableFunc(p.Sandboxes, byAge)
		slices.SortStableFunc(p.Containers, func(a, b runtime.Container) int {
			return newestFirst(a.Attempt, b.Attempt, a.CreatedAt, b.CreatedAt)
		})
	}
	return byUID, nil
}

// byAge orders sandboxes, newest first.
func byAge(a, b runtime.Sandbox) int {
	return newestFirst(int(a.Attempt), int(b.Attempt), a.CreatedAt, b.CreatedAt)
}

// newestFirst compares attempts before times: after the clock was put back, a later container has an earlier time.
func newestFirst(attempt, other int, created, others time.Time) int {
	return cmp.Or(cmp.Compare(other, attempt), others.Compare(created))
}

func (c *Client) listed(ct *runtimeapi.Container) runtime.Container {
	return runtime.Container{ID: c.containerID(ct.Id), Name: ct.Labels[labelContainerName],
		SandboxID: ct.PodSandboxId,
		Attempt:   attempt(ct.Annotations, ct.GetMetadata()), State: state(ct.State),
		Hash:    ct.Annotations[annotationHash],
		ImageID: ct.ImageRef, CreatedAt: time.Unix(0, ct.CreatedAt)}
}

// attempt returns the restart count: from the annotation, which all kubelets write, else from the metadata.
func attempt(annotations map[string]string, m *runtimeapi.ContainerMetadata) int {
	if n, err := strconv.Atoi(annotations[annotationRestartCount]); err == nil {
		return n
	}
	return int(m.GetAttempt())
}

func state(s runtimeapi.ContainerState) runtime.State {
	switch s {
	case runtimeapi.ContainerState_CONTAINER_CREATED:
		return runtime.StateCreated
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		return runtime.StateRunning
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		return runtime.StateExited
	}
	return runtime.StateUnknown
}

// stateOf returns a container's state from its whole status. A container that never ran counts as created, whatever the
// runtime calls it, so that its pod's restart policy does not apply yet. containerd calls two kinds of them otherwise:
//
//   - containerd was killed while it made the container. Afterwards it knows the container but not its status. It
//     calls it unknown, and once stopped, exited with code 255. The container has neither a time of creation nor of
//     start (the CRI asks for both if they happened). If it has a log, it was started, and containerd only lost its
//     status.
//   - The kubelet was killed while containerd made the container's task: containerd gives up with the request.
func stateOf(s *runtimeapi.ContainerStatus) runtime.State {
	exited := s.State == runtimeapi.ContainerState_CONTAINER_EXITED
	lost := exited || s.State == runtimeapi.ContainerState_CONTAINER_UNKNOWN
	if s.StartedAt <= 0 && (lost && s.CreatedAt <= 0 && !hasLog(s) || exited && startCut(s)) {
		return runtime.StateCreated
	}
	return state(s.State)
}

// startCut reports whether the container's start ended before its process ran because its caller had gone.
func startCut(s *runtimeapi.ContainerStatus) bool {
	return s.Reason == "StartError" && strings.Contains(s.Message, "failed to create containerd task") &&
		strings.Contains(s.Message, context.Canceled.Error())
}

// stuck reports whether the start of a container that never ran was cut off after containerd had made its task and
// before it had asked for its process. Such a container stays until containerd restarts: containerd refuses to remove
// one that has a task, and does not stop one that it considers exited.
func stuck(s *runtimeapi.ContainerStatus) bool {
	return startCut(s) && strings.Contains(s.Message, "failed to get task pid")
}

// hasLog reports whether a container's log was opened, which the runtime does when it starts the container.
func hasLog(s *runtimeapi.ContainerStatus) bool {
	_, err := os.Stat(s.LogPath)
	return err == nil
}

func (c *Client) fillSandboxes(ctx context.Context, p *runtime.PodStatus) error {
	kept := p.Sandboxes[:0]
	for _, s := range p.Sandboxes {
		r, err := c.sandboxStatus(ctx, s)
		if notFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("status of pod sandbox %s: %w", s.ID, err)
		}
		s.Ready = r.GetState() == runtimeapi.PodSandboxState_SANDBOX_READY
		s.HostNetwork = r.GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE
		if n := r.GetNetwork(); n.GetIp() != "" && !s.HostNetwork {
			s.IPs = append(s.IPs, n.Ip)
			for _, ip := range n.AdditionalIps {
				s.IPs = append(s.IPs, ip.Ip)
			}
		}
		kept = append(kept, s)
	}
	p.Sandboxes = kept
	return nil
}

// sandboxStatus returns a sandbox's details, from memory if they cannot have changed.
func (c *Client) sandboxStatus(ctx context.Context, s runtime.Sandbox) (*runtimeapi.PodSandboxStatus, error) {
	if r := c.memory.sandbox(s); r != nil {
		return r, nil
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	r, err := c.runtime.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: s.ID})
	if err != nil {
		return nil, err
	}
	c.memory.keepSandbox(s.ID, r.GetStatus())
	return r.GetStatus(), nil
}

// containerStatus returns a container's details, from memory if they cannot have changed.
func (c *Client) containerStatus(ctx context.Context, ct runtime.Container) (runtime.Container, error) {
	if full, ok := c.memory.container(ct); ok {
		return full, nil
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	reads := c.memory.reads()
	r, err := c.runtime.ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: ct.ID.ID})
	if err != nil {
		return ct, err
	}
	s := r.GetStatus()
	ct.State = stateOf(s)
	ct.Stuck = ct.State == runtime.StateCreated && stuck(s)
	ct.StartedAt, ct.FinishedAt = instant(s.StartedAt), instant(s.FinishedAt)
	ct.ExitCode, ct.Reason, ct.Message = s.ExitCode, s.Reason, s.Message
	ct.Image, ct.ImageRef, ct.LogPath = s.GetImage().GetImage(), s.ImageRef, s.LogPath
	if s.ImageId != "" {
		ct.ImageID = s.ImageId
	}
	ct.Resources = told(s.GetResources().GetLinux())
	if u := s.GetUser().GetLinux(); u != nil {
		ct.User = &corev1.ContainerUser{
			Linux: &corev1.LinuxContainerUser{UID: u.Uid, GID: u.Gid, SupplementalGroups: u.SupplementalGroups}}
	}
	if ct.State == runtime.StateExited {
		made := func(path string) bool {
			return c.terminationLog(types.UID(s.Labels[labelPodUID]), ct.Name, path)
		}
		if m := terminationMessage(s, ct.ExitCode, made); m != "" {
			ct.Message = joinMessages(ct.Message, m)
		}
	}
	c.memory.keepContainer(ct, reads)
	return ct, nil
}

// joinMessages puts the runtime's message before the one that the container left.
func joinMessages(runtimeMessage, own string) string {
	if runtimeMessage == "" {
		return own
	}
	return runtimeMessage + ": " + own
}

func instant(ns int64) time.Time {
	if ns <= 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}
