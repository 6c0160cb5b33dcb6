// Package podtopologylabels is the admission plug-in PodTopologyLabels: a pod that comes to a node gets the labels of
// the node's zone and region, which its containers can then read of the pod.
package podtopologylabels

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

type plugin struct{ nodes registry.Getter }

// New returns the plug-in, which changes no node that it reads.
func New(nodes registry.Getter) admission.Plugin {
	return admission.Plugin{Name: "PodTopologyLabels", Mutator: plugin{nodes}}
}

// Admit implements admission.Mutator. What a Binding says itself stays, and so does what a pod says before it is bound;
// a pod that is created on a node gets the node's.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	if a.Operation != admission.Create {
		return nil
	}
	switch obj := a.Object.(type) {
	case *corev1.Binding:
		if obj.Target.Kind == "Node" || obj.Target.Kind == "" {
			return p.label(ctx, obj.Target.Name, &obj.ObjectMeta, false)
		}
	case *corev1.Pod:
		if a.Is(corev1.Resource("pods")) && obj.Spec.NodeName != "" {
			return p.label(ctx, obj.Spec.NodeName, &obj.ObjectMeta, true)
		}
	}
	return nil
}

// label sets the node's labels on m. A node that does not exist gives none.
func (p plugin) label(ctx context.Context, node string, m *metav1.ObjectMeta, replace bool) error {
	if node == "" {
		return nil
	}
	n, err := registry.Find[*corev1.Node](ctx, p.nodes, "", node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		value, ok := n.Labels[key]
		if _, has := m.Labels[key]; ok && (replace || !has) {
			metav1.SetMetaDataLabel(m, key, value)
		}
	}
	return nil
}
