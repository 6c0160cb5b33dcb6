// Package runtimeclass is the admission plug-in RuntimeClass: a new pod gets what its class says of the pods that it
// runs: their overhead, and the nodes that they can run on. A pod whose class is not there is refused, as no node could
// run it.
package runtimeclass

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

type plugin struct{ classes registry.Getter }

// New returns the plug-in; classes are the RuntimeClasses.
func New(classes registry.Getter) admission.Plugin {
	return admission.Plugin{Name: "RuntimeClass", Mutator: plugin{classes}}
}

// Admit implements admission.Mutator. It is asked before validation, so that a missing class is what the client hears
// of.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is(corev1.Resource("pods")) || a.Operation != admission.Create {
		return nil
	}
	class, err := p.classOf(ctx, a, pod)
	if err != nil {
		return err
	}
	if err := setOverhead(a, pod, class); err != nil {
		return err
	}
	return setScheduling(a, pod, class.Scheduling)
}

// classOf is the class of a pod; one that says nothing for a pod that names none.
func (p plugin) classOf(ctx context.Context, a *admission.Attributes, pod *corev1.Pod) (*nodev1.RuntimeClass, error) {
	if pod.Spec.RuntimeClassName == nil {
		return &nodev1.RuntimeClass{}, nil
	}
	name := *pod.Spec.RuntimeClassName
	class, err := registry.Find[*nodev1.RuntimeClass](ctx, p.classes, "", name)
	if apierrors.IsNotFound(err) {
		return nil, admission.Forbid(a, "pod rejected: RuntimeClass %q not found", name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading runtime class %s: %w", name, err)
	}
	return class, nil
}

// setOverhead: a pod may say its overhead itself, but no other than its class's.
func setOverhead(a *admission.Attributes, pod *corev1.Pod, class *nodev1.RuntimeClass) error {
	if class.Overhead == nil {
		if pod.Spec.Overhead != nil {
			return admission.Forbid(a,
				"pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
		}
		return nil
	}
	if len(pod.Spec.Overhead) > 0 && !apiequality.Semantic.DeepEqual(pod.Spec.Overhead, class.Overhead.PodFixed) {
		return admission.Forbid(a, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
	}
	pod.Spec.Overhead = class.Overhead.PodFixed
	return nil
}

// setScheduling adds to the pod where its class runs; s may be nil.
func setScheduling(a *admission.Attributes, pod *corev1.Pod, s *nodev1.Scheduling) error {
	if s == nil {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(s.NodeSelector)) {
		if has, ok := pod.Spec.NodeSelector[key]; ok && has != s.NodeSelector[key] {
			return admission.Forbid(a,
				"conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key,
				s.NodeSelector[key], key, has)
		}
	}
	if len(s.NodeSelector) > 0 && pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = map[string]string{}
	}
	maps.Copy(pod.Spec.NodeSelector, s.NodeSelector)
	pod.Spec.Tolerations = admission.MergeTolerations(pod.Spec.Tolerations, s.Tolerations)
	return nil
}
