// Package apps defines the kinds of the API group apps (v1): their rows, defaults, validation, strategies and
// table columns, as pure functions. Package podspec has the rules of their pod templates.
package apps

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec"
	"bonsai/api/resources"
	"bonsai/api/validate"
)

// Rows returns the resources of the group.
func Rows() []resources.Row {
	return []resources.Row{controllerRevisionRow(), daemonSetRow(), deploymentRow(), replicaSetRow(), statefulSetRow()}
}

// containersColumn and imagesColumn are the wide columns of every workload.
func containersColumn() metav1.TableColumnDefinition {
	return resources.Wide(resources.Column("Containers", "Names of each container in the template."))
}

func imagesColumn() metav1.TableColumnDefinition {
	return resources.Wide(resources.Column("Images", "Images referenced by each container in the template."))
}

// selectorText is a label selector as tables show it.
func selectorText(s *metav1.LabelSelector) string {
	text := metav1.FormatLabelSelector(s)
	if text == "" {
		return "<none>"
	}
	return text
}

// templateWarnings complains about common mistakes in a template. Deployments, ReplicaSets and StatefulSets tell of
// them with every new generation, DaemonSets where the template has changed.
func templateWarnings(t *corev1.PodTemplateSpec) []string {
	return podspec.Warnings(&t.Spec, t.Annotations, field.NewPath("spec", "template"))
}

// validateSelector checks a workload's selector: it must be there and select something.
func validateSelector(s *metav1.LabelSelector, kind string, path *field.Path) field.ErrorList {
	if s == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	errs := validate.LabelSelector(s, path)
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		errs = append(errs, field.Invalid(path, s, "empty selector is invalid for "+kind))
	}
	return errs
}

// readable reports whether a selector can be parsed. validateSelector reports its faults.
func readable(s *metav1.LabelSelector) bool {
	_, err := metav1.LabelSelectorAsSelector(s)
	return err == nil
}

// validateReplicated checks the template of a ReplicaSet, or of a Deployment's ReplicaSets, which is looked at only
// beside a readable selector.
func validateReplicated(s *metav1.LabelSelector, t *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	if !readable(s) {
		return field.ErrorList{field.Invalid(path.Child("selector"), s, "invalid label selector")}
	}
	errs := selectsTemplate(s, t, path)
	errs = append(errs, podspec.ValidateTemplate(t, path.Child("template"))...)
	return append(errs, podspec.RunsForever(t, "ReplicaSet", path.Child("template", "spec"))...)
}

// selectsTemplate checks that a workload owns the pods it makes, as far as its selector is readable.
func selectsTemplate(s *metav1.LabelSelector, t *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil
	}
	if !selector.Empty() && !selector.Matches(labels.Set(t.Labels)) {
		return field.ErrorList{field.Invalid(path.Child("template", "metadata", "labels"), t.Labels,
			"`selector` does not match template `labels`")}
	}
	return nil
}

func deref[T any](p *T) T {
	var v T
	if p != nil {
		v = *p
	}
	return v
}
