// Package limitranger is the admission plug-in LimitRanger: it gives containers the default requests and limits of
// their namespace's limit ranges, and refuses pods, and claims on volumes, that are outside of them.
package limitranger

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"bonsai/pkg/apiserver/admission"
)

// LimitRanges reads limit ranges; the registry.Store of them is one. What a client was told to be stored is in the
// list.
type LimitRanges interface {
	List(ctx context.Context, ns, labelSelector string) ([]runtime.Object, error)
}

type plugin struct{ ranges LimitRanges }

// New returns the plug-in.
func New(ranges LimitRanges) admission.Plugin {
	return admission.Plugin{Name: "LimitRanger", Mutator: plugin{ranges}, Validator: plugin{ranges}}
}

// Admit implements admission.Mutator: it fills in defaults.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok {
		return nil
	}
	return p.each(ctx, a, func(l *corev1.LimitRange) error {
		fillIn(pod, l)
		return nil
	})
}

// Validate implements admission.Validator: it checks the bounds.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	switch o := a.Object.(type) {
	case *corev1.Pod:
		return p.each(ctx, a, func(l *corev1.LimitRange) error { return utilerrors.NewAggregate(violations(o, l)) })
	case *corev1.PersistentVolumeClaim:
		return p.each(ctx, a, func(l *corev1.LimitRange) error {
			return utilerrors.NewAggregate(claimViolations(o, l))
		})
	}
	return nil
}

// each calls do with every limit range of the namespace, in the order of their names; the first error is the answer.
func (p plugin) each(ctx context.Context, a *admission.Attributes, do func(*corev1.LimitRange) error) error {
	if !concerns(a) {
		return nil
	}
	list, err := p.ranges.List(ctx, a.Namespace, "")
	if err != nil {
		return fmt.Errorf("listing the limit ranges of namespace %s: %w", a.Namespace, err)
	}
	for _, obj := range list {
		l, ok := obj.(*corev1.LimitRange)
		if !ok {
			return fmt.Errorf("listing the limit ranges of namespace %s: got a %T", a.Namespace, obj)
		}
		if err := do(l); err != nil {
			return admission.Forbid(a, "%w", err)
		}
	}
	return nil
}

// concerns reports whether a may change what a pod's containers ask for: its creation, and its resize while it is not
// being deleted (any other update leaves that as it is); or what a claim asks for.
func concerns(a *admission.Attributes) bool {
	switch {
	case a.Operation == admission.Create &&
		(a.Is(corev1.Resource("pods")) || a.Is(corev1.Resource("persistentvolumeclaims"))):
		return true
	case a.Operation == admission.Update && a.Is(corev1.Resource("persistentvolumeclaims")):
		return true
	case a.Operation == admission.Update && a.Is(corev1.Resource("pods/resize")):
		old, ok := a.OldObject.(*corev1.Pod)
		return !ok || old.DeletionTimestamp == nil
	}
	return false
}
