package framework

import (
	"fmt"
	"slices"
	"strings"

	"bonsai/pkg/scheduler/model"
)

// Diagnosis is why a pod found no node: the facts, for messages and for later questions. It has no lock: one goroutine
// at a time uses it.
type Diagnosis struct {
	// NodeCount is the number of all nodes.
	NodeCount int
	// Plugins that turned the pod down.
	Plugins map[string]bool
	// PreFilter is set when the pod was turned down as a whole, PostFilter when PostFilter had something to say.
	PreFilter, PostFilter string
	// Snapshot is what was looked at.
	Snapshot *model.Snapshot
	// Prepare does what PreFilter does, for a PostFilter that tries filters; nil when that has been done. It is costly,
	// and many pods that fit nowhere cannot preempt anyway.
	Prepare func() *Status
	// bySlot has the statuses of the nodes that failed, by their slot in the snapshot; nodes with the same answer share
	// the Status. A list, since one entry of a map for each of thousands of nodes costs more than the rest of the
	// decision.
	bySlot []*Status
	last   *Status // rejected with last
	// kept are the statuses that are left, by the names of the nodes, once Compact has dropped the snapshot.
	kept    map[string]*Status
	message string
}

// NewDiagnosis returns an empty diagnosis of a decision on s.
func NewDiagnosis(s *model.Snapshot) *Diagnosis {
	return &Diagnosis{
		NodeCount: s.Count,
		Plugins:   map[string]bool{},
		Snapshot:  s,
		bySlot:    make([]*Status, len(s.Nodes)),
	}
}

// RefusedBy returns the diagnosis of a pod that was refused after one node had been chosen for it.
func RefusedBy(node string, s *Status) *Diagnosis {
	d := &Diagnosis{NodeCount: 1, Plugins: map[string]bool{}, kept: map[string]*Status{node: s}}
	d.blame(s)
	return d
}

// Reject records why a node of the snapshot is out.
func (d *Diagnosis) Reject(n *model.NodeInfo, s *Status) {
	d.bySlot[n.Slot] = s
	if s != d.last {
		d.last = s
		d.blame(s)
	}
}

func (d *Diagnosis) blame(s *Status) {
	if s.Plugin != "" {
		d.Plugins[s.Plugin] = true
	}
}

// Of returns why a node of the snapshot is out, nil if it is not.
func (d *Diagnosis) Of(n *model.NodeInfo) *Status { return d.bySlot[n.Slot] }

// Statuses calls yield with the name and the status of each node that failed; after Compact, of some of them.
func (d *Diagnosis) Statuses(yield func(node string, s *Status) bool) {
	for slot, s := range d.bySlot {
		if s != nil && !yield(d.Snapshot.Nodes[slot].Name(), s) {
			return
		}
	}
	for node, s := range d.kept {
		if !yield(node, s) {
			return
		}
	}
}

// Counts returns how many nodes gave each reason.
func (d *Diagnosis) Counts() map[string]int {
	alike := map[*Status]int{}
	var run *Status // of the nodes just before; neighbours often have the same status
	n := 0
	for _, s := range d.Statuses {
		if s != run {
			alike[run] += n
			run, n = s, 0
		}
		n++
	}
	alike[run] += n
	delete(alike, nil)
	counts := map[string]int{}
	for s, n := range alike {
		for _, r := range s.Reasons {
			counts[r] += n
		}
	}
	return counts
}

// noNodes is what an empty cluster answers.
const noNodes = "no nodes available to schedule pods"

// Message is what FailedScheduling events and the PodScheduled condition say: the number of nodes, each reason with its
// count, sorted as text, and what preemption said.
func (d *Diagnosis) Message() string {
	if d.message != "" {
		return d.message
	}
	if d.NodeCount == 0 {
		return noNodes
	}
	var b strings.Builder
	fmt.Fprintf(&b, "0/%d nodes are available:", d.NodeCount)
	if d.PreFilter != "" {
		fmt.Fprintf(&b, " %s.", d.PreFilter)
	} else if lines := d.lines(); len(lines) > 0 {
		fmt.Fprintf(&b, " %s.", strings.Join(lines, ", "))
	}
	if d.PostFilter != "" {
		b.WriteString(" " + d.PostFilter)
	}
	return b.String()
}

// keepNodes is how many nodes' statuses a waiting pod keeps.
const keepNodes = 100

// Compact makes the diagnosis cheap to keep: the message is made, the snapshot dropped, and of very many nodes'
// statuses only some are kept.
func (d *Diagnosis) Compact() {
	d.message = d.Message()
	some := map[string]*Status{}
	for name, s := range d.Statuses {
		if some[name] = s; len(some) == keepNodes {
			break
		}
	}
	d.kept, d.bySlot, d.last, d.Snapshot, d.Prepare = some, nil, nil, nil, nil
}

func (d *Diagnosis) lines() []string {
	var lines []string
	for reason, n := range d.Counts() {
		lines = append(lines, fmt.Sprintf("%d %s", n, reason))
	}
	slices.Sort(lines)
	return lines
}

// FitError says that no node fits the pod now.
type FitError struct {
	Pod       *model.PodInfo
	Diagnosis *Diagnosis
}

func (e *FitError) Error() string { return e.Diagnosis.Message() }
