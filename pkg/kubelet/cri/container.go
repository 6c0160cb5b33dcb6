package cri

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"bonsai/pkg/kubelet/runtime"
)

// CreateContainer makes a container and returns its id; it does not run yet.
func (c *Client) CreateContainer(ctx context.Context, q runtime.ContainerRequest) (string, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	r, err := c.runtime.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{PodSandboxId: q.SandboxID,
		Config: containerConfig(q, c.containers), SandboxConfig: sandboxConfig(q.Pod, q.Sandbox, c.containers)})
	if err != nil {
		return "", fmt.Errorf("create container: %w", withoutImageVolumes(q, err))
	}
	return r.ContainerId, nil
}

// withoutImageVolumes says in err, of a runtime that knows no image volumes, what is missing. Such a runtime overlooks
// the image of a mount, and says only that it cannot make a directory without a name.
func withoutImageVolumes(q runtime.ContainerRequest, err error) error {
	s := status.Convert(err)
	if !strings.Contains(s.Message(), "mkdir : ") ||
		!slices.ContainsFunc(q.Options.Mounts, func(m runtime.Mount) bool { return m.Image != "" }) {
		return err
	}
	return status.Error(s.Code(), "the container runtime does not support image volumes (containerd does since 2.1): "+
		s.Message())
}

// UpdateContainer gives a container the resources that q's container has now. The memory of the container's status is
// dropped also after a failure, as the runtime may have changed a part.
func (c *Client) UpdateContainer(ctx context.Context, id string, q runtime.ContainerRequest) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	_, err := c.runtime.UpdateContainerResources(ctx,
		&runtimeapi.UpdateContainerResourcesRequest{ContainerId: id, Linux: updated(resources(q, c.containers))})
	c.memory.forgetContainer(id)
	if err != nil {
		return fmt.Errorf("update the resources of container %s: %w", id, err)
	}
	return nil
}

// SetCPUs lets a running container run on these CPUs.
func (c *Client) SetCPUs(ctx context.Context, id, cpus string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	_, err := c.runtime.UpdateContainerResources(ctx,
		&runtimeapi.UpdateContainerResourcesRequest{ContainerId: id,
			Linux: &runtimeapi.LinuxContainerResources{CpusetCpus: cpus}})
	if err != nil {
		return fmt.Errorf("set the CPUs of container %s: %w", id, err)
	}
	return nil
}

// startPatience is how long a start may go on after its caller has gone. A usual start takes a tenth of a second.
const startPatience = 10 * time.Second

// StartContainer starts a created container. ctx ends with the pod's deletion and with the kubelet's own stop, but a
// start that has begun goes on for startPatience: containerd may be unable to remove a container whose start was cut
// off halfway (see stuck).
func (c *Client) StartContainer(ctx context.Context, id string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("start container: %w", ctx.Err())
	}
	ctx, stop := linger(ctx, startPatience)
	defer stop()
	ctx, cancel := c.bound(ctx)
	defer cancel()
	if _, err := c.runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		return fmt.Errorf("start container: %w", err)
	}
	return nil
}

// linger returns a context that ends so much later than ctx, or by stop. Callers must call stop, or the context's
// resources stay until ctx ends.
func linger(ctx context.Context, later time.Duration) (_ context.Context, stop context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	left := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(later)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel()
		case <-out.Done():
		}
	})
	return out, func() {
		left()
		cancel()
	}
}

// StopContainer sends the stop signal and, after grace, SIGKILL; it returns when the container has ended. One that is
// gone is no error.
func (c *Client) StopContainer(ctx context.Context, id string, grace time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout+grace)
	defer cancel()
	_, err := c.runtime.StopContainer(ctx,
		&runtimeapi.StopContainerRequest{ContainerId: id, Timeout: int64(grace / time.Second)})
	if err != nil && !notFound(err) {
		return fmt.Errorf("stop container %s: %w", id, err)
	}
	return nil
}

// RemoveContainer removes a container; one that is gone is no error.
func (c *Client) RemoveContainer(ctx context.Context, id string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	_, err := c.runtime.RemoveContainer(ctx, &runtimeapi.RemoveContainerRequest{ContainerId: id})
	if err != nil && !notFound(err) {
		return fmt.Errorf("remove container %s: %w", id, err)
	}
	return nil
}

// Checkpoint makes the runtime write a container into an archive at path; timeout 0 is the usual time. The error is in
// the runtime's words.
func (c *Client) Checkpoint(ctx context.Context, id, path string, timeout time.Duration) error {
	limit := c.timeout
	if timeout > 0 {
		limit = timeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := c.runtime.CheckpointContainer(ctx,
		&runtimeapi.CheckpointContainerRequest{ContainerId: id, Location: path, Timeout: int64(limit / time.Second)})
	return err
}

// ReopenContainerLog makes the runtime write to a new log file after the old one was moved away.
func (c *Client) ReopenContainerLog(ctx context.Context, id string) error {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	if _, err := c.runtime.ReopenContainerLog(ctx, &runtimeapi.ReopenContainerLogRequest{ContainerId: id}); err != nil {
		return fmt.Errorf("reopen the log of container %s: %w", id, err)
	}
	return nil
}

// containerConfig returns the runtime's description of a container.
func containerConfig(q runtime.ContainerRequest, node Containers) *runtimeapi.ContainerConfig {
	ct, o := q.Container, q.Options
	cfg := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: ct.Name, Attempt: uint32(o.Attempt)},
		Image:    &runtimeapi.ImageSpec{Image: o.ImageRef, UserSpecifiedImage: ct.Image},
		Command:  o.Command, Args: o.Args, WorkingDir: ct.WorkingDir,
		Labels:      containerLabels(q.Pod, ct.Name),
		Annotations: containerAnnotations(q),
		LogPath:     filepath.Join(ct.Name, strconv.Itoa(o.Attempt)+".log"),
		Stdin:       ct.Stdin, StdinOnce: ct.StdinOnce, Tty: ct.TTY,
		Linux: &runtimeapi.LinuxContainerConfig{Resources: resources(q, node),
			SecurityContext: containerSecurity(q, node)},
	}
	for _, e := range o.Env {
		cfg.Envs = append(cfg.Envs, &runtimeapi.KeyValue{Key: e.Name, Value: []byte(e.Value)})
	}
	for _, m := range o.Mounts {
		cfg.Mounts = append(cfg.Mounts, mount(m, q.Sandbox.Users))
	}
	for _, d := range o.Devices {
		cfg.Devices = append(cfg.Devices,
			&runtimeapi.Device{ContainerPath: d.ContainerPath, HostPath: d.HostPath, Permissions: d.Permissions})
	}
	for _, name := range o.CDIDevices {
		cfg.CDIDevices = append(cfg.CDIDevices, &runtimeapi.CDIDevice{Name: name})
	}
	if ct.Lifecycle != nil && ct.Lifecycle.StopSignal != nil {
		cfg.StopSignal = runtimeapi.Signal(runtimeapi.Signal_value[string(*ct.Lifecycle.StopSignal)])
	}
	return cfg
}

// mount maps the ids of a mount's files, so that on the node's disk they belong to the pod's users.
func mount(m runtime.Mount, users *runtime.IDRange) *runtimeapi.Mount {
	ids := mappings(users)
	out := &runtimeapi.Mount{ContainerPath: m.ContainerPath, HostPath: m.HostPath, Readonly: m.ReadOnly,
		RecursiveReadOnly: m.RecursiveReadOnly,
		UidMappings:       ids, GidMappings: ids}
	switch m.Propagation {
	case corev1.MountPropagationHostToContainer:
		out.Propagation = runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
	case corev1.MountPropagationBidirectional:
		out.Propagation = runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
	}
	if m.Image != "" {
		out.Image, out.ImageSubPath = &runtimeapi.ImageSpec{Image: m.Image}, m.ImageSubPath
	}
	return out
}

func containerLabels(pod *corev1.Pod, name string) map[string]string {
	return map[string]string{labelContainerName: name, labelPodName: pod.Name,
		labelPodNamespace: pod.Namespace, labelPodUID: string(pod.UID)}
}

// containerAnnotations returns the annotations that the kubelet reads again later. They are the kubelet's only memory
// of a container after a restart, for example of its hash, restart count and grace period. They win over annotations
// that device plug-ins give.
func containerAnnotations(q runtime.ContainerRequest) map[string]string {
	ct := q.Container
	own := map[string]string{
		annotationHash:                     q.Hash,
		annotationRestartCount:             strconv.Itoa(q.Options.Attempt),
		annotationTerminationMessagePath:   ct.TerminationMessagePath,
		annotationTerminationMessagePolicy: string(ct.TerminationMessagePolicy),
	}
	if g := q.Pod.Spec.TerminationGracePeriodSeconds; g != nil {
		own[annotationPodGracePeriod] = strconv.FormatInt(*g, 10)
	}
	if g := q.Pod.DeletionGracePeriodSeconds; g != nil {
		own[annotationPodDeletionGracePeriod] = strconv.FormatInt(*g, 10)
	}
	if ct.Lifecycle != nil && ct.Lifecycle.PreStop != nil {
		if b, err := json.Marshal(ct.Lifecycle.PreStop); err == nil {
			own[annotationPreStop] = string(b)
		}
	}
	if len(ct.Ports) > 0 {
		if b, err := json.Marshal(ct.Ports); err == nil {
			own[annotationPorts] = string(b)
		}
	}
	all := maps.Clone(q.Options.Annotations)
	if all == nil {
		return own
	}
	maps.Copy(all, own)
	return all
}
