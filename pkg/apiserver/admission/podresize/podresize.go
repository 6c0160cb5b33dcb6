// Package podresize is the admission plug-in PodResizeValidator: a pod may not ask for more than its whole node can
// give. Whether there is room beside the node's other pods is the kubelet's to decide.
package podresize

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

type plugin struct{ nodes registry.Getter }

// New returns the plug-in; nodes are the Nodes.
func New(nodes registry.Getter) admission.Plugin {
	return admission.Plugin{Name: "PodResizeValidator", Validator: plugin{nodes}}
}

// Validate implements admission.Validator.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	old, was := a.OldObject.(*corev1.Pod)
	if !ok || !was || a.Operation != admission.Update || !a.Is(corev1.Resource("pods/resize")) ||
		pod.Spec.NodeName == "" || apiequality.Semantic.DeepEqual(pod.Spec, old.Spec) {
		return nil
	}
	node, err := registry.Find[*corev1.Node](ctx, p.nodes, "", pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return admission.Forbid(a, "node %q not found", pod.Spec.NodeName)
	}
	if err != nil {
		return fmt.Errorf("reading node %s: %w", pod.Spec.NodeName, err)
	}
	if lacks := missing(pod, node); len(lacks) > 0 {
		return forbid(a, lacks)
	}
	return nil
}

// causeNodeCapacity tells clients apart what no waiting helps.
const causeNodeCapacity metav1.CauseType = "NodeCapacity"

func forbid(a *admission.Attributes, lacks []string) error {
	err := admission.Forbid(a, "node didn't have enough allocatable resources: %s", strings.Join(lacks, "; "))
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes,
			metav1.StatusCause{Type: causeNodeCapacity})
	}
	return err
}

// missing names the resources that the pod alone requests more of than the node has for all pods.
func missing(pod *corev1.Pod, node *corev1.Node) []string {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	var out []string
	note := func(name corev1.ResourceName, requested, allocatable int64) {
		if requested > allocatable {
			out = append(out, fmt.Sprintf("%s, requested: %d, allocatable: %d", name, requested, allocatable))
		}
	}
	note(corev1.ResourceCPU, requests.Cpu().MilliValue(), node.Status.Allocatable.Cpu().MilliValue())
	note(corev1.ResourceMemory, requests.Memory().Value(), node.Status.Allocatable.Memory().Value())
	return out
}
