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
	// Prepare gathers what the volume is made of. It may ask others and take its time until ctx ends, as nobody waits
	// for it but this volume; it leaves the volume's Place alone. The error is shown to the user in the event
	// FailedMount, or FailedMapVolume of devices.
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

// Publish makes a prepared volume, or brings it up to date, and tells what containers get of it. It is called at most
// once, and not at all if the pod ends before; it works on the node only and asks nobody.
type Publish func() (Mounted, error)

// Request asks for one volume of a pod.
type Request struct {
	Place
	Spec
	// Pod is not to be changed.
	Pod *corev1.Pod
	// Renew asks to replace what is near its end, as a token; otherwise what is still valid is good enough and nobody
	// waits for a new one.
	Renew bool
}

// Place is where a volume of a pod is.
type Place struct {
	PodUID types.UID
	// Name is the volume's (Spec.VolumeName).
	Name string
	// Dir is the volume's own directory, <pod>/volumes/kubernetes.io~<source>/<name>, which containers see; Notes that
	// of what the Source keeps about it, <pod>/plugins/kubernetes.io~<source>/<name>, which they do not. Their parents
	// are there when Publish is called, they themselves are the Source's to make. Of a volume that is a device Dir,
	// <pod>/volumeDevices/kubernetes.io~<source>/<name>, is a link to it.
	Dir, Notes string
	// Device: containers get the volume as a block device.
	Device bool
}

// Mounted is a volume that is ready to be mounted into containers.
type Mounted struct {
	HostPath string
	// Device: HostPath is that of a block device.
	Device bool
	// ReadOnly volumes are mounted read-only whatever the container asks for: the kubelet owns their content, or the
	// pod asked for it.
	ReadOnly bool
	// Image volumes have no HostPath: the runtime mounts the image itself into each container.
	Image *corev1.ImageVolumeSource
}

// MountOptioner is a Source that mounts file systems with the options that a PersistentVolume asks for. Others refuse
// volumes that ask for any.
type MountOptioner interface {
	Source
	TakesMountOptions()
}

// Mapper is a Source that gives volumes as block devices, too. Others refuse them.
type Mapper interface {
	Source
	MapsDevices()
}

// Expander is a Source whose volumes can grow.
type Expander interface {
	Source
	// Expands reports whether a volume that is published can grow by the Source's doing.
	Expands(s Spec) bool
	// Expand makes a published volume as large as to at least, and tells how large it is then. Doing it again is fine.
	// What the storage has refused is an *ExpandError.
	Expand(ctx context.Context, r Request, to resource.Quantity) (resource.Quantity, error)
}

// Measurer is a Source that is asked itself how full its volumes are. Of others the file system is.
type Measurer interface {
	Source
	// Measure tells how full a published volume is, without the claim; false if that is not known.
	Measure(ctx context.Context, at Place, s Spec) (Usage, bool)
}

// ExpandError is the storage's word that a volume has not grown.
type ExpandError struct {
	Err error
	// Infeasible: it never will to this size.
	Infeasible bool
}

// Error implements error.
func (e *ExpandError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *ExpandError) Unwrap() error { return e.Err }

// Grower brings volumes of claims to the size that they have got.
type Grower interface {
	// Grow is called when a volume was published, before its pod starts or, with Renew, while it runs. An error keeps
	// the pod from starting.
	Grow(ctx context.Context, r Request, e Expander) error
	// Forget is called when no pod on the node uses a PersistentVolume any more.
	Forget(pv string)
}

// MapError is an error of a volume that is a block device. Users are told of it with an event of another reason.
type MapError struct{ Err error }

// Error implements error.
func (e *MapError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *MapError) Unwrap() error { return e.Err }

// StepError is an error of a step that is not the usual one, SetUp.
type StepError struct {
	// Step is what users are told has failed, in upstream's words: "MountVolume.MountDevice failed".
	Step string
	Err  error
}

// Error implements error.
func (e *StepError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// PendingError is a volume that is not attached to the node yet. That is the usual course of a pod's first mount: the
// controller that attaches volumes tells users of its errors, and they need hear of the waiting only when it takes
// long.
type PendingError struct {
	// Volume is the pod's name for it.
	Volume string
	Err    error
}

// Error implements error.
func (e *PendingError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *PendingError) Unwrap() error { return e.Err }

// LimitError tells that a volume cannot be attached because the node can have no more of its kind.
type LimitError struct{ Err error }

// Error implements error.
func (e *LimitError) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *LimitError) Unwrap() error { return e.Err }
