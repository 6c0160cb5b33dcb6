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
	// AnyEvent wakes every pod, such as the periodic flush.
	AnyEvent EventKind = "*"
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
	UpdateOther
	Update = UpdateAllocatable | UpdateLabels | UpdateTaints | UpdateRequests | UpdateTolerations | UpdateGates | UpdateOther
)

// Event is a change of the cluster. Old and New are what changed: *PodInfo for pods, *corev1.Node for nodes, nil where it
// does not matter.
type Event struct {
	Kind     EventKind
	Action   Action
	Old, New any
	// Label names the event in logs and metrics.
	Label string
}

// Hint tells whether the event may make the pod schedulable for the plug-in that failed it.
type Hint func(pod *PodInfo, e Event) bool

// Interest is a set of events that may help pods which the plug-in turned down. A nil Hint always hopes.
type Interest struct {
	Kind   EventKind
	Action Action
	Hint   Hint
}

// Helps tells whether e is of interest and may help pod.
func (i *Interest) Helps(pod *PodInfo, e Event) bool {
	if i.Kind != e.Kind || i.Action&e.Action == 0 {
		return false
	}
	return i.Hint == nil || i.Hint(pod, e)
}
