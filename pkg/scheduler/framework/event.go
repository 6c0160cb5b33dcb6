package framework

// Resource kinds that cluster events are about.
type EventKind string

// The kinds of events.
const (
	// AssignedPod is a pod that has a node; Target is the waiting pod itself.
	AssignedPod EventKind = "AssignedPod"
	TargetPod   EventKind = "Pod"
	NodeEvent   EventKind = "Node"
	// NamespaceEvent and WorkloadEvent are changes of namespaces, and of services, replica sets and replication controllers.
	NamespaceEvent EventKind = "Namespace"
	WorkloadEvent  EventKind = "Workload"
	// Those of what volumes depend on; New is the object, or nil where it does not matter.
	ClaimEvent    EventKind = "PersistentVolumeClaim"
	VolumeEvent   EventKind = "PersistentVolume"
	ClassEvent    EventKind = "StorageClass"
	CSINodeEvent  EventKind = "CSINode"
	DriverEvent   EventKind = "CSIDriver"
	CapacityEvent EventKind = "CSIStorageCapacity"
	// AttachmentEvent is about a volume that is attached to a node.
	AttachmentEvent EventKind = "VolumeAttachment"
	// Those of devices and the claims on them; Old and New are the objects, nil where there is none.
	ResourceClaimEvent EventKind = "ResourceClaim"
	DeviceClassEvent   EventKind = "DeviceClass"
	ResourceSliceEvent EventKind = "ResourceSlice"
)

// Action says what happened, as a set of bits.
type Action int

// The actions. Those named Update… are parts of Update.
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
	// UpdateDeclaredFeatures is a change of what a node says that it knows.
	UpdateDeclaredFeatures
	UpdateOther
	Update = UpdateAllocatable | UpdateLabels | UpdateTaints | UpdateRequests | UpdateTolerations | UpdateGates | UpdateGeneratedClaims | UpdateDeclaredFeatures | UpdateOther
)

// Event is a change of the cluster. Old and New are what changed: *PodInfo for pods, *corev1.Node for nodes, the objects
// of other kinds, nil where it does not matter.
type Event struct {
	Kind     EventKind
	Action   Action
	Old, New any
	// Label names the event in logs and metrics.
	Label string
}

// Hint tells whether the event may make the pod schedulable for the plug-in that failed it.
type Hint func(pod *PodInfo, e Event) bool

// Interest is a set of events that may help pods which the plug-in turned down.
type Interest struct {
	Kind   EventKind
	Action Action
	// When tells, from the event alone, whether Hint can hope for anything; nil: it may.
	When func(e Event) bool
	// Hint tells whether the event may help the pod; nil always hopes.
	Hint Hint
	// Reads returns a key of everything that Hint reads of the pod: pods of equal keys get equal answers, and only one of them
	// is asked for. nil: pods are asked for one by one, which is costly where many wait.
	Reads func(pod *PodInfo) string
}

// Concerns tells whether e is of interest, whatever the pod.
func (i *Interest) Concerns(e Event) bool {
	return i.Kind == e.Kind && i.Action&e.Action != 0 && (i.When == nil || i.When(e))
}

// Helps tells whether e is of interest and may help pod.
func (i *Interest) Helps(pod *PodInfo, e Event) bool {
	return i.Concerns(e) && (i.Hint == nil || i.Hint(pod, e))
}

// Key is equal for pods that Helps answers alike.
func (i *Interest) Key(pod *PodInfo) string {
	switch {
	case i.Hint == nil:
		return ""
	case i.Reads == nil:
		return string(pod.Pod.UID)
	}
	return i.Reads(pod)
}
