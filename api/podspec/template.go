package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DefaultTemplate fills in what a client left out of a pod template.
func DefaultTemplate(t *corev1.PodTemplateSpec) {
	DropInitAnnotations(&t.ObjectMeta)
	Default(&t.Spec)
}

// ValidateTemplate checks the template of a workload.
func ValidateTemplate(t *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	errs := metavalidation.ValidateLabels(t.Labels, path.Child("labels"))
	errs = append(errs, apivalidation.ValidateAnnotations(t.Annotations, path.Child("annotations"))...)
	errs = append(errs, ValidateAnnotations(t.Annotations, &t.Spec, path.Child("annotations"))...)
	errs = append(errs, ValidateAppArmorMatch(t.Annotations, &t.Spec, path.Child("spec"))...)
	errs = append(errs, validateSpec(&t.Spec, false, path.Child("spec"))...)
	if len(t.Spec.EphemeralContainers) > 0 {
		errs = append(errs, field.Forbidden(path.Child("spec", "ephemeralContainers"),
			"ephemeral containers not allowed in pod template"))
	}
	return errs
}

// RunsForever checks that the pods of a template do not end by themselves, which is what kind's controller counts on;
// path is that of the template's spec.
func RunsForever(t *corev1.PodTemplateSpec, kind string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Spec.RestartPolicy != corev1.RestartPolicyAlways {
		errs = append(errs, field.NotSupported(path.Child("restartPolicy"), t.Spec.RestartPolicy,
			[]corev1.RestartPolicy{corev1.RestartPolicyAlways}))
	}
	if t.Spec.ActiveDeadlineSeconds != nil {
		errs = append(errs, field.Forbidden(path.Child("activeDeadlineSeconds"),
			"activeDeadlineSeconds in "+kind+" is not Supported"))
	}
	return errs
}

// ContainerTexts returns the names and the images of containers as the tables of workloads show them: with commas
// between.
func ContainerTexts(cs []corev1.Container) (names, images string) {
	n, i := make([]string, len(cs)), make([]string, len(cs))
	for k := range cs {
		n[k], i[k] = cs[k].Name, cs[k].Image
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}
