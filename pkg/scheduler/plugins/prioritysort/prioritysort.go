// Package prioritysort takes pods of higher priority first, and among equals those that have waited longer.
package prioritysort

import (
	"bonsai/pkg/scheduler/framework"
	"bonsai/pkg/scheduler/model"
)

// name of the plug-in.
const name = "PrioritySort"

// Plugin is the PrioritySort plug-in.
type Plugin struct{}

var _ framework.QueueSort = Plugin{}

// Name is the plug-in's name.
func (Plugin) Name() string { return name }

// Less reports whether a is to be taken before b.
func (Plugin) Less(a, b *framework.QueuedPod) bool {
	if p, q := model.Priority(a.Pod), model.Priority(b.Pod); p != q {
		return p > q
	}
	return a.Added.Before(b.Added)
}
