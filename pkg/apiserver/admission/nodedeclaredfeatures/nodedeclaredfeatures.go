// Package nodedeclaredfeatures is the admission plug-in NodeDeclaredFeatureValidator: a pod that has a node may change
// only in ways that its node says it knows.
package nodedeclaredfeatures

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/component-helpers/nodedeclaredfeatures"

	"bonsai/api/kubeversion"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

type plugin struct {
	nodes registry.Getter
	// version is that of the API: what every node of it knows is not asked for.
	version *version.Version
}

// New returns the plug-in; nodes are the Nodes.
func New(nodes registry.Getter) admission.Plugin {
	return admission.Plugin{Name: "NodeDeclaredFeatureValidator", Validator: plugin{nodes, kubeversion.Parsed()}}
}

// Validate implements admission.Validator.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	old, was := a.OldObject.(*corev1.Pod)
	if !ok || !was || a.Operation != admission.Update || pod.Spec.NodeName == "" ||
		len(pod.Spec.InitContainers) != len(old.Spec.InitContainers) {
		return nil
	}
	all := nodedeclaredfeatures.DefaultFramework
	needs, err := all.InferForPodUpdate(&nodedeclaredfeatures.PodInfo{Spec: &old.Spec, Status: &old.Status},
		&nodedeclaredfeatures.PodInfo{Spec: &pod.Spec, Status: &pod.Status}, p.version)
	if err != nil {
		return fmt.Errorf("what a pod's change asks of its node: %w", err)
	}
	if needs.IsEmpty() {
		return nil
	}
	node, err := registry.Find[*corev1.Node](ctx, p.nodes, "", pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return admission.Forbid(a, "node %q not found", pod.Spec.NodeName)
	}
	if err != nil {
		return fmt.Errorf("reading node %s: %w", pod.Spec.NodeName, err)
	}
	match, err := all.MatchNode(needs, node)
	if err != nil {
		return fmt.Errorf("what node %s knows: %w", node.Name, err)
	}
	if !match.IsMatch {
		return admission.Forbid(a, "pod update requires features %s which are not available on node %q",
			strings.Join(match.UnsatisfiedRequirements, ", "), node.Name)
	}
	return nil
}
