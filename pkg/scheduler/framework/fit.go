package framework

import (
	"fmt"
	"slices"
	"strings"
)

// Diagnosis is why a pod found no node: the facts, for messages and for whoever asks later.
type Diagnosis struct {
	// NodeCount is the number of all nodes.
	NodeCount int
	// Statuses are those of the nodes that failed, by name; nodes with the same answer share the Status.
	Statuses map[string]*Status
	// Plugins that turned the pod down.
	Plugins map[string]bool
	// PreFilter is set when the pod was turned down as a whole, PostFilter when PostFilter had something to say.
	PreFilter, PostFilter string
	// Snapshot is what was looked at.
	Snapshot *Snapshot
	// Prepare does what PreFilter does, for a PostFilter that tries filters; nil when that has been done. It is dear, and many
	// pods that fit nowhere cannot preempt anyway.
	Prepare func() *Status
	message string
}

// NewDiagnosis returns an empty diagnosis of a decision on s.
func NewDiagnosis(s *Snapshot) *Diagnosis {
	return &Diagnosis{NodeCount: s.Count, Statuses: make(map[string]*Status, s.Count), Plugins: map[string]bool{}, Snapshot: s}
}

// Reject records why a node is out.
func (d *Diagnosis) Reject(node string, s *Status) {
	d.Statuses[node] = s
	if s.Plugin != "" {
		d.Plugins[s.Plugin] = true
	}
}

// Counts returns how many nodes gave each reason.
func (d *Diagnosis) Counts() map[string]int {
	counts := map[string]int{}
	for _, s := range d.Statuses {
		for _, r := range s.Reasons {
			counts[r]++
		}
	}
	return counts
}

// NoNodes is what an empty cluster answers.
const NoNodes = "no nodes available to schedule pods"

// Message is what FailedScheduling events and the PodScheduled condition say: the number of nodes, each reason with its
// count, sorted as text, and what preemption said.
func (d *Diagnosis) Message() string {
	if d.message != "" {
		return d.message
	}
	if d.NodeCount == 0 {
		return NoNodes
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

// Compact makes the diagnosis cheap to keep: the message is made, the snapshot let go, and of very many nodes' statuses only
// some are kept.
func (d *Diagnosis) Compact() {
	d.message = d.Message()
	d.Snapshot, d.Prepare = nil, nil
	if len(d.Statuses) <= keepNodes {
		return
	}
	some := make(map[string]*Status, keepNodes)
	for name, s := range d.Statuses {
		if some[name] = s; len(some) == keepNodes {
			break
		}
	}
	d.Statuses = some
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
	Pod       *PodInfo
	Diagnosis *Diagnosis
}

func (e *FitError) Error() string { return e.Diagnosis.Message() }
