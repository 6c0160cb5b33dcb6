package framework

import "context"

// ExtenderName is the plug-in that statuses of extenders name. No events are known that help a pod which an extender turned down:
// each may.
const ExtenderName = "Extender"

// Extender is a program beside the scheduler that is asked about pods as well (KubeSchedulerConfiguration's extenders), after the
// profile's plug-ins: about all nodes of a pod at once, and not about each. All profiles share the extenders.
type Extender interface {
	Selective
	// Name tells extenders apart: its URL.
	Name() string
	// Ignorable tells whether the pod goes on without the extender where it cannot be asked.
	Ignorable() bool
	// FilterNodes returns the nodes on which the pod can run, and why not on others.
	FilterNodes(ctx context.Context, pod *PodInfo, nodes []*NodeInfo) (kept []*NodeInfo, refused map[*NodeInfo]*Status, err error)
	// ScoreNodes adds its weighted scores, on the scale of plug-ins, to the totals of the nodes of the same index.
	ScoreNodes(ctx context.Context, pod *PodInfo, nodes []*NodeInfo, totals []int64) error
	// Preempts tells whether SparePods is to be asked, Binds whether Bind is.
	Preempts() bool
	Binds() bool
	// SparePods returns the nodes where pods may be evicted for pod, and which: some of those that it is given, by the node's name.
	SparePods(ctx context.Context, pod *PodInfo, victims map[string]Victims) (map[string]Victims, error)
	// Bind binds the pod, in the place of the profile's plug-ins.
	Bind(ctx context.Context, pod *PodInfo, node string) error
}

// Victims are pods on one node that would have to go for another.
type Victims struct {
	Pods []*PodInfo
	// Violations counts those whose disruption budget does not allow it.
	Violations int64
}

// silent refuses a node of which the extender says no word: it is no line in the pod's condition, but the extender is to blame.
var silent = &Status{Code: Unschedulable, Plugin: ExtenderName}

// extended are the extenders that pod is sent to.
func (p *Profile) extended(pod *PodInfo) []Extender {
	var out []Extender
	for _, e := range p.Extenders {
		if e.Concerns(pod) {
			out = append(out, e)
		}
	}
	return out
}

// RunExtenders lets the extenders choose among the nodes that the plug-ins let pass, one after the other. The refused nodes are
// handed to reject. An extender that cannot be asked and may be ignored lets all pass.
func (p *Profile) RunExtenders(ctx context.Context, pod *PodInfo, nodes []*NodeInfo, reject func(*NodeInfo, *Status)) ([]*NodeInfo, error) {
	for _, e := range p.extended(pod) {
		if len(nodes) == 0 {
			break
		}
		kept, refused, err := e.FilterNodes(ctx, pod, nodes)
		switch {
		case err != nil && e.Ignorable():
			continue
		case err != nil:
			return nil, err
		}
		stays := make(map[*NodeInfo]bool, len(kept))
		for _, n := range kept {
			stays[n] = true
		}
		for _, n := range nodes {
			if st := refused[n]; st != nil {
				reject(n, st.withPlugin(ExtenderName))
			} else if !stays[n] {
				reject(n, silent)
			}
		}
		nodes = kept
	}
	return nodes, nil
}

// SpareVictims lets those extenders that take part in preemption choose among the nodes and victims, one after the other.
func (p *Profile) SpareVictims(ctx context.Context, pod *PodInfo, victims map[string]Victims) (map[string]Victims, error) {
	for _, e := range p.extended(pod) {
		if len(victims) == 0 {
			break
		}
		if !e.Preempts() {
			continue
		}
		left, err := e.SparePods(ctx, pod, victims)
		switch {
		case err != nil && e.Ignorable():
			continue
		case err != nil:
			return nil, err
		}
		victims = left
	}
	return victims, nil
}
