package batch

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateJobUpdate: how many pods, how long and how often may change while the job runs, the rest may not. Both checks
// may find the same fault of the spec; the registry reports it once.
func validateJobUpdate(obj, old *batchv1.Job) field.ErrorList {
	path := field.NewPath("spec")
	now, was := &obj.Spec, &old.Spec
	errs := append(validateJob(obj, old), validateJobSpec(now, path)...)
	errs = append(errs, validateCompletionsUpdate(now, was, path.Child("completions"))...)
	errs = append(errs, validateTemplateUpdate(obj, old, path.Child("template"))...)
	for _, f := range []struct {
		name     string
		now, was any
		show     any
	}{
		{"selector", now.Selector, was.Selector, now.Selector},
		{"completionMode", now.CompletionMode, was.CompletionMode, now.CompletionMode},
		{"podFailurePolicy", now.PodFailurePolicy, was.PodFailurePolicy, now.PodFailurePolicy},
		{"backoffLimitPerIndex", now.BackoffLimitPerIndex, was.BackoffLimitPerIndex, now.BackoffLimitPerIndex},
		{"managedBy", now.ManagedBy, was.ManagedBy, now.ManagedBy},
		{"successPolicy", now.SuccessPolicy, was.SuccessPolicy, now.SuccessPolicy},
	} {
		if !apiequality.Semantic.DeepEqual(f.now, f.was) {
			errs = append(errs, field.Invalid(path.Child(f.name), f.show, apivalidation.FieldImmutableErrorMsg))
		}
	}
	return errs
}

// validateCompletionsUpdate: an indexed job can grow and shrink as a whole, with a pod at once for each index.
func validateCompletionsUpdate(now, was *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if apiequality.Semantic.DeepEqual(now.Completions, was.Completions) {
		return nil
	}
	if !Indexed(now) || now.Completions == nil || was.Completions == nil {
		return apivalidation.ValidateImmutableField(now.Completions, was.Completions, path)
	}
	if apiequality.Semantic.DeepEqual(now.Completions, now.Parallelism) &&
		apiequality.Semantic.DeepEqual(was.Completions, was.Parallelism) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *now.Completions,
		"can only be modified in tandem with spec.parallelism")}
}

// validateTemplateUpdate: the template of a suspended job that has no pods may change in what decides on the pods'
// places. That is how queueing systems admit jobs.
func validateTemplateUpdate(obj, old *batchv1.Job, path *field.Path) field.ErrorList {
	now, was := obj.Spec.Template, old.Spec.Template
	if apiequality.Semantic.DeepEqual(now, was) {
		return nil
	}
	if !directivesMutable(old) {
		return field.ErrorList{field.Invalid(path, now, apivalidation.FieldImmutableErrorMsg)}
	}
	rest := *was.Spec.DeepCopy()
	copyDirectives(&rest, &now.Spec)
	if apiequality.Semantic.DeepEqual(rest, now.Spec) {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("spec"), now.Spec, apivalidation.FieldImmutableErrorMsg)}
}

// directivesMutable reports whether the job is suspended and no pod has been made from its template since.
func directivesMutable(old *batchv1.Job) bool {
	return deref(old.Spec.Suspend) && old.Status.StartTime == nil && old.Status.Active == 0
}

// copyDirectives copies the scheduling directives of a template, which may change while the job is suspended
// (KEP-2926): the constraints on nodes, scheduling gates and the containers' resources.
func copyDirectives(old, now *corev1.PodSpec) {
	old.NodeSelector, old.Tolerations, old.SchedulingGates = now.NodeSelector, now.Tolerations, now.SchedulingGates
	copyNodeAffinity(old, now)
	copyResources(old.Containers, now.Containers)
	copyResources(old.InitContainers, now.InitContainers)
}

func copyNodeAffinity(old, now *corev1.PodSpec) {
	switch {
	case old.Affinity == nil && now.Affinity != nil:
		old.Affinity = &corev1.Affinity{NodeAffinity: now.Affinity.NodeAffinity}
	case old.Affinity != nil && now.Affinity == nil:
		if old.Affinity.NodeAffinity = nil; old.Affinity.PodAffinity == nil && old.Affinity.PodAntiAffinity == nil {
			old.Affinity = nil
		}
	case old.Affinity != nil:
		old.Affinity.NodeAffinity = now.Affinity.NodeAffinity
	}
}

func copyResources(old, now []corev1.Container) {
	if len(old) != len(now) {
		return
	}
	for i := range old {
		old[i].Resources = now[i].Resources
	}
}
