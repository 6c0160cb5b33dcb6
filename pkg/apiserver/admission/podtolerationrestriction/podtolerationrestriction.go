// Package podtolerationrestriction is the admission plug-in PodTolerationRestriction, which is off unless it is
// enabled: a namespace says which taints its pods tolerate, and which they may. What a namespace does not say, the
// configuration says for all.
package podtolerationrestriction

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec"
	"bonsai/pkg/apiserver/admission"
	"bonsai/pkg/apiserver/registry"
)

// The annotations of a namespace: JSON lists of tolerations.
const (
	defaultsAnnotation = "scheduler.alpha.kubernetes.io/defaultTolerations"
	allowedAnnotation  = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
)

// APIVersion and Kind are those of a Configuration.
const (
	APIVersion = "podtolerationrestriction.admission.k8s.io/v1alpha1"
	Kind       = "Configuration"
)

// Configuration is what holds for namespaces without annotations.
type Configuration struct {
	metav1.TypeMeta
	// Default are tolerations that pods get.
	Default []corev1.Toleration `json:"default,omitempty"`
	// Whitelist are the only ones that pods may have; empty: all.
	Whitelist []corev1.Toleration `json:"whitelist,omitempty"`
}

// Validate reports what is wrong with the configuration.
func (c *Configuration) Validate() error {
	return errors.Join(podspec.ValidateTolerations(c.Default, field.NewPath("default")).ToAggregate(),
		podspec.ValidateTolerations(c.Whitelist, field.NewPath("whitelist")).ToAggregate())
}

type plugin struct {
	namespaces registry.Getter
	*Configuration
}

// New returns the plug-in, which changes no namespace that it reads. Without a configuration only annotations count.
func New(namespaces registry.Getter, c *Configuration) admission.Plugin {
	if c == nil {
		c = &Configuration{}
	}
	p := plugin{namespaces, c}
	return admission.Plugin{Name: "PodTolerationRestriction", Mutator: p, Validator: p}
}

// Admit implements admission.Mutator.
func (p plugin) Admit(ctx context.Context, a *admission.Attributes) error {
	pod := tolerating(a)
	if pod == nil {
		return nil
	}
	if a.Operation == admission.Create {
		ns, err := registry.Find[*corev1.Namespace](ctx, p.namespaces, "", a.Namespace)
		if err != nil {
			return err
		}
		more, said, err := annotated(ns, defaultsAnnotation)
		if err != nil {
			return err
		}
		if !said {
			more = p.Default
		}
		pod.Spec.Tolerations = admission.MergeTolerations(pod.Spec.Tolerations, more)
	}
	if podspec.QOSClass(pod) != corev1.PodQOSBestEffort {
		pod.Spec.Tolerations = admission.MergeTolerations(pod.Spec.Tolerations, []corev1.Toleration{{
			Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists,
			Effect: corev1.TaintEffectNoSchedule}})
	}
	return p.Validate(ctx, a)
}

// Validate implements admission.Validator: a later plug-in, or a webhook, may have added tolerations. The refusal is a
// 500, as upstream's.
func (p plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	pod := tolerating(a)
	if pod == nil || len(pod.Spec.Tolerations) == 0 {
		return nil
	}
	ns, err := registry.Find[*corev1.Namespace](ctx, p.namespaces, "", a.Namespace)
	if err != nil {
		return err
	}
	allowed, said, err := annotated(ns, allowedAnnotation)
	if err != nil {
		return err
	}
	whose := "namespace"
	if !said {
		allowed, whose = p.Whitelist, "cluster"
	}
	if len(allowed) == 0 {
		return nil
	}
	for _, t := range pod.Spec.Tolerations {
		if !slices.ContainsFunc(allowed, func(by corev1.Toleration) bool { return admission.Covers(by, t) }) {
			return admission.Fail("pod tolerations (possibly merged with namespace default tolerations) conflict with its %s whitelist", whose)
		}
	}
	return nil
}

// tolerating returns a pod that is created or changes its tolerations; nil for all else: an old pod that breaks the
// rules must stay removable.
func tolerating(a *admission.Attributes) *corev1.Pod {
	pod, ok := a.Object.(*corev1.Pod)
	if !ok || !a.Is(corev1.Resource("pods")) || a.Operation != admission.Create && a.Operation != admission.Update {
		return nil
	}
	if old, ok := a.OldObject.(*corev1.Pod); ok &&
		apiequality.Semantic.DeepEqual(old.Spec.Tolerations, pod.Spec.Tolerations) {
		return nil
	}
	return pod
}

// annotated returns the tolerations that an annotation of a namespace lists, and whether it has the annotation. An
// empty one lists none, which is not the same as no annotation.
func annotated(ns *corev1.Namespace, key string) (list []corev1.Toleration, said bool, err error) {
	text, said := ns.Annotations[key]
	if text == "" {
		return nil, said, nil
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, true, admission.Fail("%v", err)
	}
	return list, true, nil
}
