package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/kubelet/cri"
	kubelet "bonsai/pkg/kubelet/runtime"
)

// bare makes pods by calls to a node's container runtime, without a Kubernetes: the same calls that a kubelet makes, as
// many sandboxes at a time. The pods have no UID, so the node's kubelet takes them for somebody else's and leaves them
// alone.
type bare struct {
	client  *cri.Client
	handler string // the runtime handler, "" for the default one
	image   string // its id
	turns   chan struct{}
}

// dialRuntime connects to a runtime that has the image.
func dialRuntime(ctx context.Context, socket, handler, image string) (*bare, error) {
	client, err := cri.Dial(ctx, cri.Config{Endpoint: socket})
	if err != nil {
		return nil, err
	}
	found, err := client.Image(ctx, image)
	if err == nil && found == nil {
		err = fmt.Errorf("the runtime at %s has no image %s", socket, image)
	}
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &bare{client: client, handler: handler, image: found.ID, turns: make(chan struct{}, 2*runtime.NumCPU())}, nil
}

// pod makes the sandbox of a pod of podSpec, with its container running. The mounts are as many as a pod's with a
// token, /etc/hosts and a termination log.
func (b *bare) pod(ctx context.Context, name string) (sandbox string, err error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "bare"}, Spec: podSpec(b.image)}
	options := kubelet.SandboxOptions{Hostname: name, CgroupParent: "/kubepods/besteffort",
		DNS: kubelet.DNS{Servers: []string{"127.0.0.1"}}}
	b.turns <- struct{}{}
	sandbox, err = b.client.RunSandbox(ctx, pod, b.handler, options)
	<-b.turns
	if err != nil {
		return "", err
	}
	id, err := b.client.CreateContainer(ctx,
		kubelet.ContainerRequest{SandboxID: sandbox, Pod: pod, Container: &pod.Spec.Containers[0], Sandbox: options,
			Options: kubelet.ContainerOptions{ImageRef: b.image, Command: pod.Spec.Containers[0].Command,
				Mounts: []kubelet.Mount{
					{HostPath: "/etc/hosts", ContainerPath: "/etc/hosts"},
					{HostPath: "/etc/resolv.conf", ContainerPath: "/dev/termination-log"},
					{HostPath: "/var/log/pods", ContainerPath: "/var/run/secrets/kubernetes.io/serviceaccount",
						ReadOnly: true}}}})
	if err == nil {
		err = b.client.StartContainer(ctx, id)
	}
	return sandbox, err
}

// remove removes pods, a few at a time; what it was given of pods that were not made is "".
func (b *bare) remove(ctx context.Context, sandboxes []string) error {
	errs := make([]error, len(sandboxes))
	each(len(sandboxes), func(i int) {
		if id := sandboxes[i]; id != "" {
			b.turns <- struct{}{}
			errs[i] = errors.Join(b.client.StopSandbox(ctx, id), b.client.RemoveSandbox(ctx, id))
			<-b.turns
		}
	})
	return errors.Join(errs...)
}

// one returns how long a pod takes, and removes it.
func (b *bare) one(ctx context.Context, name string) (time.Duration, error) {
	begun := time.Now()
	id, err := b.pod(ctx, name)
	took := time.Since(begun)
	return took, errors.Join(err, b.remove(ctx, []string{id}))
}

// burst returns how long n pods take that are asked for at once, and removes them.
func (b *bare) burst(ctx context.Context, n int) (time.Duration, error) {
	begun, sandboxes, errs := time.Now(), make([]string, n), make([]error, n)
	each(n, func(i int) { sandboxes[i], errs[i] = b.pod(ctx, fmt.Sprintf("bare-%d", i)) })
	took := time.Since(begun)
	return took, errors.Join(append(errs, b.remove(ctx, sandboxes))...)
}

// each calls f with 0 to n-1, all at once, and waits.
func each(n int, f func(int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}
