// Package executor carries out the plans of lifecycle: it makes a pod's sandbox with its volumes, starts containers
// with all they are given, runs their hooks, and ends them. It decides nothing but when to try again what failed.
package executor

import (
	"context"
	"errors"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/pkg/kubelet/dns"
	"bonsai/pkg/kubelet/env"
	"bonsai/pkg/kubelet/images"
	"bonsai/pkg/kubelet/logs"
	"bonsai/pkg/kubelet/runtime"
	"bonsai/pkg/kubelet/volume"
	"bonsai/pkg/trace"
)

// Runtime is the container runtime.
type Runtime interface {
	PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error)
	RunSandbox(ctx context.Context, pod *corev1.Pod, handler string, o runtime.SandboxOptions) (string, error)
	StopSandbox(ctx context.Context, id string) error
	CreateContainer(ctx context.Context, q runtime.ContainerRequest) (string, error)
	StartContainer(ctx context.Context, id string) error
	// UpdateContainer gives a container the resources that q's container has now.
	UpdateContainer(ctx context.Context, id string, q runtime.ContainerRequest) error
	// StopContainer sends the stop signal and, after grace, SIGKILL.
	StopContainer(ctx context.Context, id string, grace time.Duration) error
	RemoveContainer(ctx context.Context, id string) error
	// ExecSync runs a command in a container, no longer than timeout; 0: as long as ctx.
	ExecSync(ctx context.Context, id string, command []string, timeout time.Duration) (runtime.ExecResult, error)
	// Handler is what one of the runtime's handlers can do.
	Handler(name string) runtime.Handler
}

// Images brings images to the node.
type Images interface {
	// Ensure returns an image, pulled if the policy says so. An *images.Error is a reason for the container to wait.
	Ensure(ctx context.Context, pod *corev1.Pod, image string, policy corev1.PullPolicy, secrets []corev1.Secret,
		event images.Event) (*runtime.Image, error)
	// Hold protects the image that get returns from garbage collection until release is called.
	Hold(ctx context.Context, get func() (*runtime.Image, error)) (img *runtime.Image, release func(), err error)
}

// Volumes makes a pod's volumes, and the few files that a pod has besides them.
type Volumes interface {
	Mount(ctx context.Context, pod *corev1.Pod) (map[string]volume.Mounted, error)
	SubPath(pod *corev1.Pod, container string, index int, volume string, from volume.Mounted, subPath string) (string,
		error)
	WriteHosts(uid types.UID, content []byte) (string, error)
	TerminationLog(uid types.UID, container string) (string, error)
}

// Resources gives pods what they must have of the node before their containers start.
type Resources interface {
	// Prepare gives it; if it cannot, users get an event. It is called before each sandbox, and after a restart of the
	// kubelet, when it gives the same again.
	Prepare(ctx context.Context, pod *corev1.Pod) error
	// Sandbox and Container add it to the options that the sandbox, and one of the containers, are made with.
	Sandbox(pod *corev1.Pod, o *runtime.SandboxOptions)
	Container(pod *corev1.Pod, c *corev1.Container, o *runtime.ContainerOptions) error
	// Starting does what is to be done before each start of a container.
	Starting(ctx context.Context, pod *corev1.Pod, c *corev1.Container) error
}

// Cgroups are those of whole pods. Containers' cgroups are the runtime's.
type Cgroups interface {
	// Grow raises those values of a pod's cgroup that are to become larger, Settle sets all of them. A resize calls
	// Grow before the containers are updated and Settle after: a container never has more than its pod.
	Grow(ctx context.Context, pod *corev1.Pod) error
	Settle(ctx context.Context, pod *corev1.Pod) error
	// MayLimit returns why a container's memory may not be limited to so many bytes, nil if it may.
	MayLimit(pod *corev1.Pod, name, id string, memory int64) error
}

// Allocations records what the cgroups were given, so that a resize is known to be done, also after a restart.
type Allocations interface {
	Actuated(uid types.UID, container string, given corev1.ResourceRequirements)
	// PodActuated is about the pod's own cgroup, and the pod's resources of that generation.
	PodActuated(uid types.UID, generation int64)
}

// Node is what starting a pod needs to know about the node.
type Node interface {
	// HostIPs are the node's addresses, the primary one first.
	HostIPs() []string
	// NetworkReady returns why no pod of the pod network can start yet, nil if it can.
	NetworkReady(ctx context.Context) error
}

// Classes knows pods' RuntimeClasses.
type Classes interface {
	// Handler is the runtime's handler that a pod's class stands for; "" is the default one.
	Handler(ctx context.Context, pod *corev1.Pod) (string, error)
}

// Events tells users of steps, in upstream's words. kind is Normal or Warning.
type Events interface {
	Pod(pod *corev1.Pod, kind, reason, message string)
	Container(pod *corev1.Pod, container, kind, reason, message string)
}

// Metrics counts starts.
type Metrics interface {
	// StartedPod counts the making of a sandbox by one of the runtime's handlers.
	StartedPod(pod *corev1.Pod, handler string, took time.Duration, err error)
	// StartedContainer counts a start; code is why it failed, "" if it did not.
	StartedContainer(kind runtime.Kind, code string)
	// ImageVolumeAsked counts an image that a container is to have as a volume, ImageVolumesMounted n of them that it
	// has got, or that the runtime could not mount.
	ImageVolumeAsked()
	ImageVolumesMounted(n int, ok bool)
	// HookFellBack counts an HTTPS hook that was told by HTTP.
	HookFellBack()
}

// Addresses are those of a pod and of its node, the primary one first.
type Addresses struct{ Pod, Host []string }

// Config is what an Executor needs. All but MaxBackOff and Tracer is required.
type Config struct {
	Runtime   Runtime
	Images    Images
	Volumes   Volumes
	Resources Resources
	Cgroups   Cgroups
	// Allocations must not call back.
	Allocations Allocations
	Node        Node
	Classes     Classes
	Events      Events
	Metrics     Metrics
	// Environment are the variables of a container whose pod has these volumes; its errors are the user's to fix.
	Environment func(ctx context.Context, pod *corev1.Pod, c *corev1.Container, a Addresses,
		volumes map[string]volume.Mounted) ([]env.Var, error)
	// Secret reads a pull secret.
	Secret func(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// Message is the runtime's own text of an error of a call.
	Message func(err error) string
	// ImageVolumeFailed reports whether the error of a call says that an image could not be mounted as a volume.
	ImageVolumeFailed func(err error) bool

	DNS  dns.Config
	Logs logs.Files
	// Capacity is the node's.
	Capacity corev1.ResourceList
	// MaxBackOff is the longest delay between restarts of a crashing container, 0 for upstream's 5 min.
	MaxBackOff time.Duration
	// Tracer records the steps of pods; nil: nothing is recorded.
	Tracer *trace.Tracer
	// NetworkTimes returns when a sandbox's network began to be made and was ready, if that is known. It is asked for
	// what is recorded alone, and may be nil.
	NetworkTimes func(sandbox string) (begun, ended time.Time, ok bool)
	Log          *slog.Logger
}

// Executor carries out plans. It decides nothing about a pod's life: that is lifecycle's. Its methods are safe for
// concurrent use by the workers of different pods; calls for one pod come one after the other.
type Executor struct {
	cfg   Config
	turns turns
	spans recorder
}

// New checks the configuration. It starts nothing.
//
// It is called once at the start of the kubelet.
func New(cfg Config) (*Executor, error) {
	for _, missing := range []bool{cfg.Runtime == nil, cfg.Images == nil, cfg.Volumes == nil, cfg.Resources == nil,
		cfg.Cgroups == nil, cfg.Allocations == nil, cfg.Node == nil, cfg.Classes == nil, cfg.Events == nil,
		cfg.Metrics == nil, cfg.Environment == nil, cfg.Secret == nil, cfg.Message == nil, cfg.ImageVolumeFailed == nil,
		cfg.Log == nil} {
		if missing {
			return nil, errors.New("executor: all but MaxBackOff, Tracer and NetworkTimes is required")
		}
	}
	e := &Executor{cfg: cfg, turns: newTurns()}
	e.spans = recorder{&e.cfg}
	return e, nil
}

// Pod is what an Executor remembers about a pod between its steps. Only the pod's worker touches it, so it has no lock.
//
// It is lost with the kubelet, except for what the runtime and the disk show.
type Pod struct {
	// prepared: the pod has what it needs of the node, and mounts is set.
	prepared bool
	mounts   map[string]volume.Mounted
	// attaching is when the pod began to wait for volumes to be attached, or when users last got an event about it;
	// zero while it does not wait.
	attaching time.Time
	// waited is how long its containers have waited for their images.
	waited time.Duration
	// byName remembers the starts of containers, by name.
	byName map[string]*starts
}

// Waited is how long the pod's containers have waited for their images.
func (p *Pod) Waited() time.Duration { return p.waited }

// NewPod returns what is remembered about a pod at the beginning of its life: nothing.
func NewPod() *Pod { return &Pod{byName: map[string]*starts{}} }
