// Package cri speaks the Container Runtime Interface over a unix socket: it is the only importer of the CRI stubs. It
// turns pods into sandbox and container configurations, and the runtime's answers into the kubelet's own vocabulary
// (package runtime). It works with every runtime that serves runtime.v1 (containerd ≥ 1.6).
package cri

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	crierrors "k8s.io/cri-api/pkg/errors"

	"bonsai/pkg/kubelet/cpuquota"
	"bonsai/pkg/kubelet/memoryqos"
	"bonsai/pkg/kubelet/runtime"
)

// maxMessage bounds one gRPC answer; lists of many containers are large.
const maxMessage = 16 << 20

// Client talks to one runtime. It is safe for concurrent use.
type Client struct {
	conn    *grpc.ClientConn
	image   *grpc.ClientConn
	runtime runtimeapi.RuntimeServiceClient
	images  runtimeapi.ImageServiceClient
	timeout time.Duration
	// version and handlers are what the runtime last said: another one may serve the socket after a restart.
	version    atomic.Pointer[runtime.Version]
	handlers   atomic.Pointer[map[string]runtime.Handler]
	containers Containers
	memory     *memory

	terminationLog func(uid types.UID, container, path string) bool
}

// Config says where the runtime is and how to speak to it.
type Config struct {
	// Endpoint is the runtime's socket, "unix:///run/containerd/containerd.sock" or a plain path.
	Endpoint string
	// ImageEndpoint is the image service's socket; empty: the same.
	ImageEndpoint string
	// Timeout bounds every call but pulls, streams and calls with a timeout of their own. Default 2 min.
	Timeout time.Duration
	Containers
	// TerminationLog reports whether path is a file that the kubelet made for the termination message of a container;
	// no other is read. nil: none is.
	TerminationLog func(uid types.UID, container, path string) bool
	// Observe, if set, receives the result of each call except streams; operation is its name in metrics (see
	// operation).
	Observe func(operation string, took time.Duration, err error)
}

// Containers are the node's settings for all containers.
type Containers struct {
	// CgroupV2: the node has the unified hierarchy.
	CgroupV2 bool
	// SeccompDefault gives containers without a seccomp profile the runtime's default one instead of none.
	SeccompDefault bool
	// SingleProcessOOMKill lets the kernel end one process of a container that is out of memory, not all of them (with
	// CgroupV2; without it that is always so).
	SingleProcessOOMKill bool
	// CPU is how limits of CPU are kept.
	CPU cpuquota.Quota
	// Memory is how memory is protected and throttled (with CgroupV2).
	Memory memoryqos.QoS
}

// Dial connects and asks the runtime for its version. It waits for the runtime until ctx ends, and fails then.
func Dial(ctx context.Context, cfg Config) (*Client, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 2 * time.Minute
	}
	conn, err := dial(cfg.Endpoint, cfg.Observe)
	if err != nil {
		return nil, err
	}
	c := &Client{conn: conn, image: conn, timeout: cfg.Timeout, containers: cfg.Containers,
		memory: newMemory(), terminationLog: cfg.TerminationLog}
	if cfg.ImageEndpoint != "" && cfg.ImageEndpoint != cfg.Endpoint {
		if c.image, err = dial(cfg.ImageEndpoint, cfg.Observe); err != nil {
			conn.Close()
			return nil, err
		}
	}
	if c.terminationLog == nil {
		c.terminationLog = func(types.UID, string, string) bool { return false }
	}
	c.runtime, c.images = runtimeapi.NewRuntimeServiceClient(conn), runtimeapi.NewImageServiceClient(c.image)
	c.handlers.Store(&map[string]runtime.Handler{})
	if err := c.ask(ctx, grpc.WaitForReady(true)); err != nil {
		c.Close()
		return nil, fmt.Errorf("ask the container runtime at %s for its version: %w", cfg.Endpoint, err)
	}
	// The handlers come with the runtime's health, which the Node asks for again and again: an error is no reason not
	// to begin.
	_, _ = c.Health(ctx)
	return c, nil
}

// ask asks the runtime for its version.
func (c *Client) ask(ctx context.Context, o ...grpc.CallOption) error {
	v, err := c.runtime.Version(ctx, &runtimeapi.VersionRequest{Version: "v1"}, o...)
	if err != nil {
		return err
	}
	c.version.Store(&runtime.Version{Name: v.RuntimeName, Version: v.RuntimeVersion, APIVersion: v.RuntimeApiVersion})
	return nil
}

func dial(endpoint string, observe func(operation string, took time.Duration, err error)) (*grpc.ClientConn, error) {
	if !strings.Contains(endpoint, "://") {
		endpoint = "unix://" + endpoint
	}
	if !strings.HasPrefix(endpoint, "unix://") {
		return nil, fmt.Errorf("container runtime endpoint %q is not a unix socket", endpoint)
	}
	options := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)), grpc.WithConnectParams(reconnect())}
	if observe != nil {
		options = append(options, grpc.WithUnaryInterceptor(observed(observe)))
	}
	conn, err := grpc.NewClient(endpoint, options...)
	if err != nil {
		return nil, fmt.Errorf("dial the container runtime at %s: %w", endpoint, err)
	}
	return conn, nil
}

// reconnect returns how soon a socket without a listener is tried again. A runtime that starts beside the kubelet, or
// again, is ready within a tenth of a second, and gRPC's own first pause of a second would be most of a node's start.
// The pauses grow to three seconds while the runtime stays away.
func reconnect() grpc.ConnectParams {
	pauses := backoff.DefaultConfig
	pauses.BaseDelay, pauses.MaxDelay = 20*time.Millisecond, 3*time.Second
	return grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: 5 * time.Second}
}

// Close ends the connection; calls in progress fail.
func (c *Client) Close() error {
	err := c.conn.Close()
	if c.image != c.conn {
		c.image.Close()
	}
	return err
}

// Version returns the runtime's version as of its last Health.
func (c *Client) Version() runtime.Version { return *c.version.Load() }

// Health asks the runtime for its conditions, its handlers and its version.
func (c *Client) Health(ctx context.Context) (runtime.Health, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	r, err := c.runtime.Status(ctx, &runtimeapi.StatusRequest{})
	if err != nil {
		return runtime.Health{}, fmt.Errorf("ask the container runtime for its status: %w", err)
	}
	var h runtime.Health
	for _, cond := range r.GetStatus().GetConditions() {
		switch cond.Type {
		case runtimeapi.RuntimeReady:
			h.RuntimeReady, h.RuntimeReason, h.RuntimeMessage = cond.Status, cond.Reason, cond.Message
		case runtimeapi.NetworkReady:
			h.NetworkReady, h.NetworkReason, h.NetworkMessage = cond.Status, cond.Reason, cond.Message
		}
	}
	for _, x := range r.GetRuntimeHandlers() {
		h.Handlers = append(h.Handlers,
			runtime.Handler{Name: x.Name, RecursiveReadOnlyMounts: x.GetFeatures().GetRecursiveReadOnlyMounts(),
				UserNamespaces: x.GetFeatures().GetUserNamespaces()})
	}
	handlers := make(map[string]runtime.Handler, len(h.Handlers))
	for _, x := range h.Handlers {
		handlers[x.Name] = x
	}
	c.handlers.Store(&handlers)
	if err := c.ask(ctx); err != nil {
		return runtime.Health{}, fmt.Errorf("ask the container runtime for its version: %w", err)
	}
	if r.Features != nil {
		h.SupplementalGroupsPolicy = &r.Features.SupplementalGroupsPolicy
	}
	return h, nil
}

// CgroupDriver returns the driver by which the runtime makes the cgroups of containers, "cgroupfs" or "systemd"; "" if
// it does not tell: containerd tells since 2.0.
func (c *Client) CgroupDriver(ctx context.Context) (string, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	r, err := c.runtime.RuntimeConfig(ctx, &runtimeapi.RuntimeConfigRequest{})
	switch {
	case status.Code(err) == codes.Unimplemented, err == nil && r.Linux == nil:
		return "", nil
	case err != nil:
		return "", fmt.Errorf("ask the container runtime for its cgroup driver: %w", err)
	}
	return strings.ToLower(r.Linux.CgroupDriver.String()), nil
}

// Handler returns what the runtime handler of that name can do ("" is the default one).
func (c *Client) Handler(name string) runtime.Handler { return (*c.handlers.Load())[name] }

func (c *Client) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.timeout)
}

func (c *Client) containerID(id string) runtime.ContainerID {
	return runtime.ContainerID{Type: c.Version().Name, ID: id}
}

// notFound reports whether the runtime does not know the object (any more).
func notFound(err error) bool { return status.Code(err) == codes.NotFound }

// ImageVolumeFailed reports whether the runtime says, in CRI's word for it, that it could not mount an image as a
// volume.
func ImageVolumeFailed(err error) bool {
	return strings.Contains(status.Convert(err).Message(), crierrors.ErrImageVolumeMountFailed.Error())
}

// Message returns the runtime's own text of a container's failed call without gRPC's code, as users see it in events
// and statuses.
func Message(err error) string { return status.Convert(err).Message() }
