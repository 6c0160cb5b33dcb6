// Package podindex has the indices of pods that several controllers read. The pods' informer is shared, so each index
// exists once, however many controllers ask for it. An index that only one controller reads belongs to that controller.
package podindex

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"bonsai/pkg/controller"
)

// ByNode finds pods by the node that they are bound to.
type ByNode struct {
	index controller.Index[*corev1.Pod]
}

// NewByNode adds the index to pods, if it is not there yet.
func NewByNode(pods *controller.Informer[*corev1.Pod]) ByNode {
	return ByNode{controller.NewIndex(pods, "node", func(p *corev1.Pod) []string { return []string{p.Spec.NodeName} })}
}

// On returns the cached pods that are bound to a node; for "" the pods that are bound to none.
func (b ByNode) On(node string) []*corev1.Pod { return b.index.At(node) }

// Nodes returns the names of the nodes that cached pods are bound to, whether or not these nodes exist.
func (b ByNode) Nodes() []string {
	return slices.DeleteFunc(b.index.Values(), func(node string) bool { return node == "" })
}

// ByLabel finds pods by one of their labels. A selector that asks for a label by value need not look at the rest of the
// namespace.
type ByLabel struct {
	index controller.Index[*corev1.Pod]
}

// NewByLabel adds the index to pods, if it is not there yet.
func NewByLabel(pods *controller.Informer[*corev1.Pod]) ByLabel {
	return ByLabel{controller.NewIndex(pods, "label", func(p *corev1.Pod) []string {
		at := make([]string, 0, len(p.Labels))
		for label, value := range p.Labels {
			at = append(at, labelValue(p.Namespace, label, value))
		}
		return at
	})}
}

// With returns the cached pods of a namespace whose label has a value.
func (b ByLabel) With(namespace, label, value string) []*corev1.Pod {
	return b.index.At(labelValue(namespace, label, value))
}

// labelValue is unique for each label in each namespace: neither namespaces nor labels contain a space or an equals
// sign.
func labelValue(namespace, label, value string) string { return namespace + " " + label + "=" + value }

// ByClaim finds pods by the PersistentVolumeClaims that their volumes use.
type ByClaim struct {
	index controller.Index[*corev1.Pod]
}

// NewByClaim adds the index to pods, if it is not there yet.
func NewByClaim(pods *controller.Informer[*corev1.Pod]) ByClaim {
	return ByClaim{controller.NewIndex(pods, "claim", func(p *corev1.Pod) []string {
		var at []string
		for i := range p.Spec.Volumes {
			if name := controller.ClaimOf(p, &p.Spec.Volumes[i]); name != "" {
				at = append(at, controller.Key{Namespace: p.Namespace, Name: name}.String())
			}
		}
		return at
	})}
}

// Using returns the cached pods that use a claim, whatever their phase.
func (b ByClaim) Using(claim controller.Key) []*corev1.Pod { return b.index.At(claim.String()) }
