// Package priority is the admission plug-in Priority: it turns a pod's priorityClassName into its priority and
// preemption policy, and keeps the default class unique.
package priority

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

// Classes are the PriorityClasses that the plug-in reads.
type Classes interface {
	registry.Getter
	admission.Classes
}

type plugin struct{ classes Classes }

// New returns the plug-in, which changes no class that it reads.
func New(classes Classes) admission.Plugin {
	return admission.Plugin{Name: "Priority", Mutator: plugin{classes}, Validator: plugin{classes}}
}

// Admit implements admission.Mutator.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is(corev1.Resource("pods")) {
		return nil
	}
	switch a.Operation {
	case admission.Create:
		return p.create(ctx, a, pod)
	case admission.Update:
		carryOver(pod, a.OldObject)
	}
	return nil
}

// carryOver keeps what admission filled in when a client updates the pod with a copy that lacks it. Priority cannot
// change after creation, so validation would refuse such an update otherwise. If the class name differs, nothing is
// carried over, and validation refuses the update.
func carryOver(pod *corev1.Pod, old runtime.Object) {
	was, ok := old.(*corev1.Pod)
	if !ok || pod.Spec.PriorityClassName != was.Spec.PriorityClassName {
		return
	}
	if pod.Spec.Priority == nil {
		pod.Spec.Priority = was.Spec.Priority
	}
	if pod.Spec.PreemptionPolicy == nil {
		pod.Spec.PreemptionPolicy = was.Spec.PreemptionPolicy
	}
}

// create lets the class alone decide: a pod that could name its own number could preempt any other pod. The pod keeps
// the number, whatever becomes of the class.
func (p plugin) create(ctx context.Context, a *admission.Attributes, pod *corev1.Pod) error {
	class, err := p.classFor(ctx, a, pod.Spec.PriorityClassName)
	if err != nil {
		return err
	}
	policy := corev1.PreemptLowerPriority
	if class.PreemptionPolicy != nil {
		policy = *class.PreemptionPolicy
	}
	if v := pod.Spec.Priority; v != nil && *v != class.Value {
		return admission.Forbid(a,
			"the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *v, class.Value)
	}
	if v := pod.Spec.PreemptionPolicy; v != nil && *v != policy {
		return admission.Forbid(a,
			"the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *v, policy)
	}
	value := class.Value
	pod.Spec.PriorityClassName, pod.Spec.Priority, pod.Spec.PreemptionPolicy = class.Name, &value, &policy
	return nil
}

// classFor returns the named class; without a name the default class, or an unnamed one of priority 0 if there is none.
func (p plugin) classFor(ctx context.Context, a *admission.Attributes, name string) (*schedulingv1.PriorityClass,
	error) {
	if name == "" {
		return p.byDefault(ctx)
	}
	class, err := registry.Find[*schedulingv1.PriorityClass](ctx, p.classes, "", name)
	if apierrors.IsNotFound(err) {
		return nil, admission.Forbid(a, "no PriorityClass with name %v was found", name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading priority class %s: %w", name, err)
	}
	return class, nil
}

// byDefault returns the default class; of several the one with the lowest value.
func (p plugin) byDefault(ctx context.Context) (*schedulingv1.PriorityClass, error) {
	list, err := p.classes.List(ctx, "", "")
	if err != nil {
		return nil, fmt.Errorf("listing priority classes: %w", err)
	}
	var found *schedulingv1.PriorityClass
	for _, obj := range list {
		if c, ok := obj.(*schedulingv1.PriorityClass); ok && c.GlobalDefault &&
			(found == nil || c.Value < found.Value) {
			found = c
		}
	}
	if found == nil {
		return &schedulingv1.PriorityClass{}, nil
	}
	return found, nil
}

// Validate implements admission.Validator: there is one default class at most, and the system's own classes stay.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	if a.Operation == admission.Delete && a.Is(schedulingv1.Resource("priorityclasses")) &&
		(a.Name == "system-node-critical" || a.Name == "system-cluster-critical") {
		return admission.Forbid(a, "this is a system priority class and cannot be deleted")
	}
	class, ok := a.Object.(*schedulingv1.PriorityClass)
	if !ok || !class.GlobalDefault || a.Subresource != "" ||
		a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	other, err := p.byDefault(ctx)
	if err != nil {
		return err
	}
	if other.Name != "" && other.Name != class.Name {
		return admission.Forbid(a, "PriorityClass %v is already marked as default. Only one default can exist",
			other.Name)
	}
	return nil
}
