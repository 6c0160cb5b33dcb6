package runtime

import corev1 "k8s.io/api/core/v1"

// KeyValue is one environment variable.
type KeyValue struct{ Name, Value string }

// Mount is one bind mount into a container, or a mounted image.
type Mount struct {
	ContainerPath string
	HostPath      string
	ReadOnly      bool
	// RecursiveReadOnly makes the mounts below read-only too; needs a runtime that supports it.
	RecursiveReadOnly bool
	// Propagation is None unless said otherwise.
	Propagation corev1.MountPropagationMode
	// Image is the image to mount in place of HostPath, ImageSubPath the path within it.
	Image        string
	ImageSubPath string
}

// Device is a device of the node in a container.
type Device struct {
	ContainerPath string
	HostPath      string
	// Permissions are some of r (read), w (write) and m (make the file).
	Permissions string
}

// DNS is what the sandbox's resolv.conf says.
type DNS struct {
	Servers  []string
	Searches []string
	Options  []string
}

// SandboxOptions is what a sandbox needs in addition to the pod's spec.
type SandboxOptions struct {
	Attempt      uint32
	Hostname     string
	DNS          DNS
	CgroupParent string
	LogDirectory string
	// Users are the node's ids that stand for those of the pod's users and groups; nil: the pod has the node's.
	Users *IDRange
}

// IDRange is a range of ids of the node: First is the pod's 0.
type IDRange struct{ First, Length uint32 }

// OwnUsers reports whether a pod asks for users of its own.
func OwnUsers(pod *corev1.Pod) bool { return pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers }

// ContainerOptions is what a container needs in addition to the pod's spec.
type ContainerOptions struct {
	// Attempt is the restart count.
	Attempt int
	// ImageRef is the local id of the image to run; Image the name the pod asked for.
	ImageRef string
	Env      []KeyValue
	// Command and Args have their variables expanded.
	Command []string
	Args    []string
	Mounts  []Mount
	// Devices are devices of the node that the container may use. CDIDevices are full names of further ones, which the
	// runtime resolves by the Container Device Interface. Annotations are for the runtime.
	Devices     []Device
	CDIDevices  []string
	Annotations map[string]string
	// CPUs are those that the container may run on, as "0-2,7"; "" for all.
	CPUs string
	// NoCPUQuota: the container has its CPUs for itself. A quota of time would throttle it without saving anybody
	// anything.
	NoCPUQuota bool
	// MemoryNodes are the NUMA nodes whose memory the container uses, as "0-1"; "" for all.
	MemoryNodes string
	// TargetID is the container whose process namespace an ephemeral container joins.
	TargetID string
	// ImageUID is the image's user where it is a number, nil where it is a name; ImageUser is the name.
	ImageUID  *int64
	ImageUser string
	// LimitSwap reports that the kernel can limit swap; Swap is how many bytes of it the container may use.
	LimitSwap bool
	Swap      int64
}

// ContainerRequest is all that making one container needs.
type ContainerRequest struct {
	SandboxID string
	Pod       *corev1.Pod
	Container *corev1.Container
	Hash      string
	Sandbox   SandboxOptions
	Options   ContainerOptions
	// Node is the node's capacity: its memory sets the OOM score of burstable containers, its sizes of huge pages are
	// limited.
	Node corev1.ResourceList
}

// Streams are which of a process's streams a client wants, and whether they are a terminal.
type Streams struct{ Stdin, Stdout, Stderr, TTY bool }

// ExecResult is the outcome of a command that ran.
type ExecResult struct {
	Stdout, Stderr []byte
	ExitCode       int32
}

// Image is one image on the node.
type Image struct {
	ID          string
	RepoTags    []string
	RepoDigests []string
	Size        uint64
	// UID is the image's user where it is a number; Username where it is a name.
	UID      *int64
	Username string
	Pinned   bool
}

// Auth is a credential for one registry.
type Auth struct {
	Username, Password, Auth, ServerAddress, IdentityToken, RegistryToken string
}

// Health is the runtime's own word on its readiness.
type Health struct {
	RuntimeReady, NetworkReady     bool
	RuntimeMessage, NetworkMessage string
	RuntimeReason, NetworkReason   string
	// Handlers are the runtime classes' handlers that the runtime knows.
	Handlers []Handler
	// SupplementalGroupsPolicy reports whether the runtime honours that field, nil if it does not say.
	SupplementalGroupsPolicy *bool
}

// Handler is one runtime handler and what it can do.
type Handler struct {
	Name                    string
	RecursiveReadOnlyMounts bool
	UserNamespaces          bool
}

// Version is the runtime's name and version.
type Version struct{ Name, Version, APIVersion string }

// Filesystems are the directories where the runtime keeps images and writable layers, and what it uses there. They may
// be the same.
type Filesystems struct {
	Images, Containers       string
	ImagesUse, ContainersUse DiskUse
}

// DiskUse is what something takes of a disk.
type DiskUse struct{ Bytes, Inodes int64 }

// Plus is the sum of both.
func (d DiskUse) Plus(o DiskUse) DiskUse { return DiskUse{d.Bytes + o.Bytes, d.Inodes + o.Inodes} }
