package clusterevent

import "bonsai/pkg/scheduler/model"

// Kind is the kind of object that an event is about.
type Kind string

// The kinds of events.
const (
	// AssignedPod is a pod that has a node; TargetPod is the waiting pod itself.
	AssignedPod Kind = "AssignedPod"
	TargetPod   Kind = "Pod"
	Node        Kind = "Node"
	Namespace   Kind = "Namespace"
	// Kinds that volumes depend on. Event.New is the object, or nil where it does not matter.
	Claim    Kind = "PersistentVolumeClaim"
	Volume   Kind = "PersistentVolume"
	Class    Kind = "StorageClass"
	CSINode  Kind = "CSINode"
	Driver   Kind = "CSIDriver"
	Capacity Kind = "CSIStorageCapacity"
	// Attachment is a volume that is attached to a node.
	Attachment Kind = "VolumeAttachment"
	// Devices and the claims on them. Event.Old and Event.New are the objects, nil where there is none.
	ResourceClaim Kind = "ResourceClaim"
	DeviceClass   Kind = "DeviceClass"
	ResourceSlice Kind = "ResourceSlice"
)

// Action says what happened, as a set of bits.
type Action int

// The actions. Update is the union of all that begin with Update.
const (
	Add Action = 1 << iota
	Delete
	UpdateAllocatable
	UpdateLabels
	UpdateTaints
	UpdateRequests
	UpdateTolerations
	UpdateGates
	// UpdateGeneratedClaims is a change of the names of the ResourceClaims that were made for a pod.
	UpdateGeneratedClaims
	// UpdateDeclaredFeatures is a change of the features that a node declares.
	UpdateDeclaredFeatures
	UpdateOther
	Update = UpdateAllocatable | UpdateLabels | UpdateTaints | UpdateRequests | UpdateTolerations | UpdateGates |
		UpdateGeneratedClaims | UpdateDeclaredFeatures | UpdateOther
)

// Event is a change of the cluster. Old and New are what changed: *PodInfo for pods, *corev1.Node for nodes, the
// objects of other kinds, nil where it does not matter.
type Event struct {
	Kind     Kind
	Action   Action
	Old, New any
	// Label names the event in logs and metrics.
	Label string
}

// Hint reports whether the event may make the pod schedulable for the plug-in that failed it.
type Hint func(pod *model.PodInfo, e Event) bool

// Interest is a set of events that may help pods which the plug-in turned down.
type Interest struct {
	Kind   Kind
	Action Action
	// When reports, from the event alone, whether Hint could return true; nil means that it could.
	When func(e Event) bool
	// Hint reports whether the event may help the pod; nil means that it may.
	Hint Hint
	// Reads returns a key of everything that Hint reads of the pod. Hint is called once for all pods of equal keys.
	// With nil it is called for each pod, which is costly when many wait.
	Reads func(pod *model.PodInfo) string
}

// Concerns reports whether e is of interest, whatever the pod.
func (i *Interest) Concerns(e Event) bool {
	return i.Kind == e.Kind && i.Action&e.Action != 0 && (i.When == nil || i.When(e))
}

// Helps reports whether e is of interest and may help pod.
func (i *Interest) Helps(pod *model.PodInfo, e Event) bool {
	return i.Concerns(e) && (i.Hint == nil || i.Hint(pod, e))
}

// Key is equal for pods that Helps answers alike.
func (i *Interest) Key(pod *model.PodInfo) string {
	switch {
	case i.Hint == nil:
		return ""
	case i.Reads == nil:
		return string(pod.Pod.UID)
	}
	return i.Reads(pod)
}
