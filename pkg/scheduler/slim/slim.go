// Package slim drops from pods and nodes what no decision reads, which is most of their size. What is kept is derived:
// Core has the fields that the scheduler itself reads, and each plug-in declares the others that it reads.
package slim

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/scheduler/framework"
)

// Keeper drops fields of fresh objects in place. It is safe for concurrent use.
type Keeper struct {
	pod, node *tree // nil: all is kept
	// reduced are the lists of a pod that are kept in part: some entries, or parts of entries.
	reduced map[string]bool
}

// New returns a Keeper of the fields in Core and in reads. A path that names no field is an error.
func New(reads ...framework.Fields) (*Keeper, error) {
	fields := core()
	k := &Keeper{reduced: map[string]bool{}}
	for _, path := range reducible() {
		k.reduced[path] = true
	}
	for _, r := range reads {
		for _, path := range r.Pod {
			k.whole(path)
		}
		fields.Pod, fields.Node = append(fields.Pod, r.Pod...), append(fields.Node, r.Node...)
	}
	var err error
	if k.pod, err = grow(reflect.TypeFor[corev1.Pod](), fields.Pod); err != nil {
		return nil, fmt.Errorf("fields of pods that decisions read: %w", err)
	}
	if k.node, err = grow(reflect.TypeFor[corev1.Node](), fields.Node); err != nil {
		return nil, fmt.Errorf("fields of nodes that decisions read: %w", err)
	}
	return k, nil
}

// Everything returns a Keeper that drops nothing but managed fields: for extenders, which are sent whole objects.
func Everything() *Keeper { return &Keeper{} }

// Pod drops from a fresh pod what is not kept.
func (k *Keeper) Pod(pod *corev1.Pod) {
	k.reduce(pod)
	k.VisitPod(pod, reflect.Value.SetZero)
}

// Node drops from a fresh node what is not kept.
func (k *Keeper) Node(node *corev1.Node) { k.VisitNode(node, reflect.Value.SetZero) }

// VisitPod calls drop with each field that Pod drops. Lists that are kept in part are not visited.
func (k *Keeper) VisitPod(pod *corev1.Pod, drop func(reflect.Value)) {
	if k.pod == nil {
		pod.ManagedFields = nil
		return
	}
	k.pod.visit(reflect.ValueOf(pod).Elem(), drop)
}

// VisitNode calls drop with each field that Node drops.
func (k *Keeper) VisitNode(node *corev1.Node, drop func(reflect.Value)) {
	if k.node == nil {
		node.ManagedFields = nil
		return
	}
	k.node.visit(reflect.ValueOf(node).Elem(), drop)
}
