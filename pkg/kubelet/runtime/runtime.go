// Package runtime is the kubelet's vocabulary for the state of the container runtime and for requests to it: types
// only, no behaviour beyond look-ups. The children of pkg/kubelet share it so that none of them needs to import
// another.
package runtime

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations on pods that say where a pod comes from.
const (
	AnnotationConfigSource = "kubernetes.io/config.source"
	AnnotationConfigMirror = "kubernetes.io/config.mirror"
	AnnotationConfigHash   = "kubernetes.io/config.hash"
)

// Values of AnnotationConfigSource.
const (
	sourceAPI  = "api"
	SourceFile = "file"
)

// SystemCriticalPriority is the least priority of the system's own pods, that of the class system-cluster-critical.
const SystemCriticalPriority = 2_000_000_000

// State is the state of a container as the runtime reports it.
type State string

// The states of a container.
const (
	StateCreated State = "created"
	StateRunning State = "running"
	StateExited  State = "exited"
	StateUnknown State = "unknown"
)

// ContainerID names a container together with the kind of runtime that runs it; its text is "containerd://<id>".
type ContainerID struct {
	// Type is the runtime's name, "containerd".
	Type string
	// ID is the runtime's own id.
	ID string
}

// String is the form that pods' statuses carry, "" for the zero id.
func (c ContainerID) String() string {
	if c.ID == "" {
		return ""
	}
	return c.Type + "://" + c.ID
}

// ParseContainerID is the inverse of String.
func ParseContainerID(s string) (ContainerID, error) {
	kind, id, ok := strings.Cut(strings.Trim(s, "\""), "://")
	if !ok || kind == "" || id == "" {
		return ContainerID{}, fmt.Errorf("container id %q is not of the form runtime://id", s)
	}
	return ContainerID{Type: kind, ID: id}, nil
}

// Sandbox is one pod sandbox.
type Sandbox struct {
	ID string
	// Attempt counts the sandboxes of a pod from 0.
	Attempt uint32
	Ready   bool
	// HostNetwork: the sandbox shares the node's network namespace; it has no IPs of its own then.
	HostNetwork bool
	// Handler is which of the runtime's handlers made it; "" is the default one.
	Handler   string
	CreatedAt time.Time
	// IPs are the addresses of the pod network, the primary one first. Lists leave it empty.
	IPs []string
}

// Container is one container, running or not. Lists fill only the fields up to CreatedAt.
type Container struct {
	ID        ContainerID
	Name      string
	SandboxID string
	// Attempt is the restart count.
	Attempt int
	State   State
	// Stuck: it was made and never ran, and the runtime does not remove it for now. Its successor is made next to it.
	Stuck     bool
	Hash      string
	ImageID   string
	CreatedAt time.Time

	StartedAt  time.Time
	FinishedAt time.Time
	ExitCode   int32
	Reason     string
	Message    string
	// Image is the name the runtime reports, ImageRef the digest reference of what runs.
	Image    string
	ImageRef string
	LogPath  string
	// User is the process's identity where the runtime tells it.
	User *corev1.ContainerUser
	// Resources are what the container's cgroup has, where the runtime tells it.
	Resources *ContainerResources
}

// ContainerResources are the values of a container's cgroup in the terms of the API; 0: not known, or no limit.
type ContainerResources struct {
	MilliCPURequest, MilliCPULimit int64
	// MemoryLimit is in bytes.
	MemoryLimit int64
}

// PodStatus is everything the runtime knows of one pod.
type PodStatus struct {
	UID       types.UID
	Name      string
	Namespace string
	// Annotations are the pod's, as its newest sandbox was made with them. Only lists fill it.
	Annotations map[string]string
	// Sandboxes and Containers are sorted by attempt and then by creation, newest first.
	Sandboxes  []Sandbox
	Containers []Container
}

// Sandbox returns the newest sandbox, nil if there is none.
func (p *PodStatus) Sandbox() *Sandbox {
	if p == nil || len(p.Sandboxes) == 0 {
		return nil
	}
	return &p.Sandboxes[0]
}

// Container returns the newest container of that name, nil if there is none.
func (p *PodStatus) Container(name string) *Container { return p.nth(name, 0) }

// Previous returns the newest but one container of that name, nil if there is none.
func (p *PodStatus) Previous(name string) *Container { return p.nth(name, 1) }

func (p *PodStatus) nth(name string, n int) *Container {
	if p == nil {
		return nil
	}
	for i := range p.Containers {
		if p.Containers[i].Name != name {
			continue
		}
		if n == 0 {
			return &p.Containers[i]
		}
		n--
	}
	return nil
}

// Running reports whether any container of the pod runs, or may run.
func (p *PodStatus) Running() bool {
	for i := range p.Containers {
		if s := p.Containers[i].State; s == StateRunning || s == StateUnknown {
			return true
		}
	}
	return false
}

// SandboxReady reports whether any sandbox of the pod is ready.
func (p *PodStatus) SandboxReady() bool {
	for i := range p.Sandboxes {
		if p.Sandboxes[i].Ready {
			return true
		}
	}
	return false
}
