package rows

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec"
	"bonsai/api/resources"
)

// forbidPrivileged adds to a kind's validation that its pods have no privileged containers.
func forbidPrivileged(s *resources.Strategy) {
	create, update := s.Validate, s.ValidateUpdate
	s.Validate = func(obj runtime.Object) field.ErrorList {
		var errs field.ErrorList
		if create != nil {
			errs = create(obj)
		}
		spec, path := podSpec(obj)
		return append(errs, podspec.ForbidPrivileged(spec, path)...)
	}
	s.ValidateUpdate = func(obj, old runtime.Object) (errs field.ErrorList, kept []string) {
		if update != nil {
			errs, kept = update(obj, old)
		}
		spec, path := podSpec(obj)
		return append(errs, podspec.ForbidPrivileged(spec, path)...), kept
	}
}

// podSpec returns the pod that obj is or makes, if there is one, and where it is in obj; nil for other kinds.
func podSpec(obj runtime.Object) (*corev1.PodSpec, *field.Path) {
	template := field.NewPath("spec", "template", "spec")
	switch o := obj.(type) {
	case *corev1.Pod:
		return &o.Spec, field.NewPath("spec")
	case *corev1.PodTemplate:
		return &o.Template.Spec, field.NewPath("template", "spec")
	case *corev1.ReplicationController:
		if o.Spec.Template == nil {
			return nil, template
		}
		return &o.Spec.Template.Spec, template
	case *appsv1.DaemonSet:
		return &o.Spec.Template.Spec, template
	case *appsv1.Deployment:
		return &o.Spec.Template.Spec, template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template.Spec, template
	case *appsv1.StatefulSet:
		return &o.Spec.Template.Spec, template
	case *batchv1.Job:
		return &o.Spec.Template.Spec, template
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template.Spec, field.NewPath("spec", "jobTemplate", "spec", "template", "spec")
	}
	return nil, nil
}
