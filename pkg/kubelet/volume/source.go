package volume

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// Source is one kind of volume. For each volume of a pod the Manager calls, in this order,
//
//	Prepare   gathers the volume's content
//	Publish   makes the volume at its place, or brings it up to date
//	TakeDown  removes it when the pod's containers are gone, if the Source is a Remover
//
// Prepare and Publish come again at every start of the pod, whenever the content may be out of date, and after a
// restart of the kubelet, while containers use the volume: they must leave alone what is complete. TakeDown may come
// without them, from a kubelet that has never seen the pod. So a Source keeps what it must know about a volume after a
// restart at the volume's Place, or finds it there.
//
// Calls for different pods run at the same time. For one pod, Publish and TakeDown run one after the other, Prepare at
// any time. The tests of the contract are in volumetest: among others, that only a Remover leaves anything at a Place.
type Source interface {
	// Name is the plug-in's name as directories have it, without the prefix kubernetes.io: "empty-dir".
	Name() string
	// Supports reports whether a volume is of this kind. It is of one kind only.
	Supports(s Spec) bool
	// Prepare gathers what the volume is made of. It may ask others and take until ctx ends, because only this volume
	// waits for it; it leaves the volume's Place alone. The error is shown to the user in the event FailedMount, or
	// FailedMapVolume for devices.
	Prepare(ctx context.Context, r Request) (Publish, error)
}

// Remover is a Source that makes something at a volume's Place. Other Sources only show what is on the node anyway.
type Remover interface {
	Source
	// TakeDown removes everything that Publish has made, finished or not, with every mount of it. It leaves alone what
	// others own, such as a directory of the host. It has only the volume's Place to go by, and does not wait for the
	// API server. It may be called again.
	TakeDown(ctx context.Context, at Place) error
}

// Publish makes a prepared volume, or brings it up to date, and returns what containers get. It is called at most once,
// and not at all if the pod ends before. It works only on the node and asks nobody, because it runs under the pod's
// lock.
type Publish func() (Mounted, error)

// Request asks for one volume of a pod.
type Request struct {
	Place
	Spec
	// Pod is read-only.
	Pod *corev1.Pod
	// Renew asks to replace what is about to expire, such as a token. Without it, anything that is still valid is good
	// enough, and nobody waits for a new one.
	Renew bool
}

// Place is where a volume of a pod is on the node.
type Place struct {
	PodUID types.UID
	// Name is the volume's (Spec.VolumeName).
	Name string
	// Dir is the volume's own directory, <pod>/volumes/kubernetes.io~<source>/<name>, which containers see. Notes is
	// the directory for what the Source must remember about it, <pod>/plugins/kubernetes.io~<source>/<name>, which they
	// do not see. Their parents exist when Publish is called; the Source makes the directories themselves. For a
	// device, Dir is <pod>/volumeDevices/kubernetes.io~<source>/<name>, a link to it.
	Dir, Notes string
	// Device: containers get the volume as a block device.
	Device bool
}

// Mounted is a volume that is ready to be mounted into containers.
type Mounted struct {
	HostPath string
	// Device: HostPath is a block device.
	Device bool
	// ReadOnly volumes are mounted read-only whatever the container asks for: the kubelet owns their content, or the
	// pod asked for it.
	ReadOnly bool
	// Image volumes have no HostPath: the runtime mounts the image itself into each container.
	Image *corev1.ImageVolumeSource
}

// MountOptioner is a Source that honours the mount options of a PersistentVolume. The Manager refuses volumes of other
// sources that ask for any.
type MountOptioner interface {
	Source
	TakesMountOptions()
}

// Mapper is a Source that can also give volumes as block devices. The Manager refuses block volumes of other sources.
type Mapper interface {
	Source
	MapsDevices()
}

// Expander is a Source whose volumes can grow.
type Expander interface {
	Source
	// Expands reports whether the Source can make a published volume grow.
	Expands(s Spec) bool
	// Expand makes a published volume at least as large as to, and returns its new size. It may be called again. A
	// refusal of the storage is an *ExpandError.
	Expand(ctx context.Context, r Request, to resource.Quantity) (resource.Quantity, error)
}

// Measurer is a Source that is asked how full its volumes are. For other sources the file system is asked.
type Measurer interface {
	Source
	// Measure returns how full a published volume is, without the claim; false if that is unknown.
	Measure(ctx context.Context, at Place, s Spec) (Usage, bool)
}

// ExpandError is a refusal of the storage to make a volume grow.
type ExpandError struct {
	Err error
	// Infeasible: it will never have this size, so nobody should try again.
	Infeasible bool
}

// Error implements error.
func (e *ExpandError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *ExpandError) Unwrap() error { return e.Err }

// Grower makes the file systems of claims as large as their PersistentVolumes have become.
type Grower interface {
	// Grow is called when a volume was published, before its pod starts or, with Renew, while it runs. An error keeps
	// the pod from starting.
	Grow(ctx context.Context, r Request, e Expander) error
	// Forget is called when no pod on the node uses a PersistentVolume any more.
	Forget(pv string)
}

// MapError is an error of a volume that is a block device. Its event has another reason.
type MapError struct{ Err error }

// Error implements error.
func (e *MapError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *MapError) Unwrap() error { return e.Err }

// StepError is an error of another step than the usual one, SetUp.
type StepError struct {
	// Step is the step that failed as users see it, in upstream's words: "MountVolume.MountDevice failed".
	Step string
	Err  error
}

// Error implements error.
func (e *StepError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// PendingError is a volume that is not attached to the node yet. That is the usual course of a pod's first mount. The
// controller that attaches volumes reports its own errors, so users hear about the waiting only if it takes long.
type PendingError struct {
	// Volume is the pod's name for it.
	Volume string
	Err    error
}

// Error implements error.
func (e *PendingError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *PendingError) Unwrap() error { return e.Err }

// LimitError is the error of a volume that cannot be attached because the node is at its limit for this kind.
type LimitError struct{ Err error }

// Error implements error.
func (e *LimitError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *LimitError) Unwrap() error { return e.Err }
