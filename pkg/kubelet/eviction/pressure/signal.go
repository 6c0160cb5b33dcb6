// Package pressure decides what a node does when something of it runs short. It is pure: from thresholds, what was
// observed, what was remembered of earlier looks and the time, it computes the node's conditions, which thresholds are
// to be acted on (Next), and which pod goes first (Rank) with which words (Message). The rules:
// https://kubernetes.io/docs/concepts/scheduling-eviction/node-pressure-eviction/.
package pressure

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Signal names what is observed of a node.
type Signal string

// The signals. That of allocatable memory has no threshold of its own: it follows the hard one of the node's memory.
const (
	MemoryAvailable            Signal = "memory.available"
	AllocatableMemoryAvailable Signal = "allocatableMemory.available"
	NodeFsAvailable            Signal = "nodefs.available"
	NodeFsInodesFree           Signal = "nodefs.inodesFree"
	ImageFsAvailable           Signal = "imagefs.available"
	ImageFsInodesFree          Signal = "imagefs.inodesFree"
	ContainerFsAvailable       Signal = "containerfs.available"
	ContainerFsInodesFree      Signal = "containerfs.inodesFree"
	PIDAvailable               Signal = "pid.available"
)

// What pods and messages call that which runs short and is no resource of the API.
const (
	Inodes    corev1.ResourceName = "inodes"
	Processes corev1.ResourceName = "pids"
)

// signals are those that settings may name.
func signals() []Signal {
	return []Signal{MemoryAvailable, AllocatableMemoryAvailable, NodeFsAvailable, NodeFsInodesFree, ImageFsAvailable,
		ImageFsInodesFree,
		ContainerFsAvailable, ContainerFsInodesFree, PIDAvailable}
}

func (s Signal) known() bool { return slices.Contains(signals(), s) }

// Resource is what is to be had back when the signal is low.
func (s Signal) Resource() corev1.ResourceName {
	switch s {
	case MemoryAvailable, AllocatableMemoryAvailable:
		return corev1.ResourceMemory
	case PIDAvailable:
		return Processes
	case NodeFsInodesFree, ImageFsInodesFree, ContainerFsInodesFree:
		return Inodes
	}
	return corev1.ResourceEphemeralStorage
}

// Condition is the condition of a node that says that the signal is low.
func (s Signal) Condition() corev1.NodeConditionType {
	switch s.Resource() {
	case corev1.ResourceMemory:
		return corev1.NodeMemoryPressure
	case Processes:
		return corev1.NodePIDPressure
	}
	return corev1.NodeDiskPressure
}

// OfImages reports whether the signal is about the file system of the images.
func (s Signal) OfImages() bool { return s == ImageFsAvailable || s == ImageFsInodesFree }

// urgency orders signals: memory is gone fastest.
func (s Signal) urgency() int {
	if s.Resource() == corev1.ResourceMemory {
		return 0
	}
	return 1
}
