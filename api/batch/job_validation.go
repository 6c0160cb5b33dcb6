package batch

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/podspec"
	"bonsai/api/validate"
)

// Bounds on jobs whose indexes are tracked in the status, which must stay small enough to be stored.
const (
	maxIndexedParallelism = 100_000
	maxFailedIndexes      = 100_000
	// Above maxTracked completions a job with a limit per index may have no more than maxTrackedFew pods at once and
	// failed indexes.
	maxTracked    = 100_000
	maxTrackedFew = 10_000
	maxManagedBy  = 63
)

// validateJob checks a job; old is nil for a new one.
func validateJob(j, old *batchv1.Job) field.ErrorList {
	path := field.NewPath("spec")
	errs := validateGenerated(j, old)
	errs = append(errs, validateJobSpec(&j.Spec, path)...)
	if !Indexed(&j.Spec) {
		return errs
	}
	if n := deref(j.Spec.Completions); n > 0 {
		host := fmt.Sprintf("%s-%d", j.Name, n-1)
		if len(validation.IsDNS1123Label(host)) > 0 {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), j.Name,
				"will not able to create pod with invalid DNS label: "+host))
		}
	}
	return errs
}

// validateGenerated checks that nobody has changed the generated selector and labels. Jobs that were made before the
// labels with a domain may go on without them; old is nil for a new job.
func validateGenerated(j, old *batchv1.Job) field.ErrorList {
	if deref(j.Spec.ManualSelector) {
		return nil
	}
	if j.Spec.Selector == nil {
		return nil // which validateJobSpec finds missing
	}
	path := field.NewPath("spec")
	at := path.Child("template", "metadata", "labels")
	want := generatedLabels(j)
	var errs field.ErrorList
	required := []string{oldUIDLabel, oldNameLabel}
	if old == nil || has(old.Spec.Template.Labels, batchv1.ControllerUidLabel, batchv1.JobNameLabel) {
		required = append(required, batchv1.ControllerUidLabel, batchv1.JobNameLabel)
	}
	for _, label := range required {
		switch got, ok := j.Spec.Template.Labels[label]; {
		case !ok:
			errs = append(errs, field.Required(at.Key(label), "must be '"+want[label]+"'"))
		case got != want[label]:
			errs = append(errs, field.Invalid(at.Key(label), j.Spec.Template.Labels, "must be '"+want[label]+"'"))
		}
	}
	for _, label := range []string{oldUIDLabel, batchv1.ControllerUidLabel} {
		only := &metav1.LabelSelector{MatchLabels: map[string]string{label: string(j.UID)}}
		if apiequality.Semantic.DeepEqual(j.Spec.Selector, only) {
			return errs
		}
	}
	return append(errs, field.Invalid(path.Child("selector"), j.Spec.Selector, "`selector` not auto-generated"))
}

// has reports whether m has all of the keys.
func has(m map[string]string, keys ...string) bool {
	return !slices.ContainsFunc(keys, func(k string) bool {
		_, ok := m[k]
		return !ok
	})
}

func validateJobSpec(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	errs := validateJobTemplateSpec(s, path)
	if s.Selector == nil {
		errs = append(errs, field.Required(path.Child("selector"), ""))
	} else {
		errs = append(errs, validate.LabelSelector(s.Selector, path.Child("selector"))...)
	}
	if selector, err := metav1.LabelSelectorAsSelector(s.Selector); err == nil &&
		!selector.Matches(labels.Set(s.Template.Labels)) {
		errs = append(errs, field.Invalid(path.Child("template", "metadata", "labels"), s.Template.Labels,
			"`selector` does not match template `labels`"))
	}
	return errs
}

// validateJobTemplateSpec checks what a cron job says of its jobs, too: all but the selector.
func validateJobTemplateSpec(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, n := range []struct {
		name  string
		value *int32
	}{
		{"parallelism", s.Parallelism}, {"completions", s.Completions}, {"backoffLimit", s.BackoffLimit},
		{"ttlSecondsAfterFinished", s.TTLSecondsAfterFinished}, {"backoffLimitPerIndex", s.BackoffLimitPerIndex},
		{"maxFailedIndexes", s.MaxFailedIndexes},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(deref(n.value)), path.Child(n.name))...)
	}
	errs = append(errs, apivalidation.ValidateNonnegativeField(deref(s.ActiveDeadlineSeconds),
		path.Child("activeDeadlineSeconds"))...)
	if s.MaxFailedIndexes != nil && s.BackoffLimitPerIndex == nil {
		errs = append(errs, field.Required(path.Child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"))
	}
	errs = append(errs, validateManagedBy(s.ManagedBy, path.Child("managedBy"))...)
	errs = append(errs, validateMode(s, path)...)
	errs = append(errs, validateReplacement(s, path.Child("podReplacementPolicy"))...)
	if s.PodFailurePolicy != nil {
		errs = append(errs, validatePodFailurePolicy(s, path.Child("podFailurePolicy"))...)
	}
	if s.SuccessPolicy != nil {
		errs = append(errs, validateSuccessPolicy(s, path.Child("successPolicy"))...)
	}
	errs = append(errs, podspec.ValidateTemplate(&s.Template, path.Child("template"))...)
	return append(errs, validateRestartPolicy(s, path.Child("template", "spec", "restartPolicy"))...)
}

// validateRestartPolicy: the pods of a job come to an end, and where failures are judged each is a pod's.
func validateRestartPolicy(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	switch p := s.Template.Spec.RestartPolicy; p {
	case "", corev1.RestartPolicyAlways:
		return field.ErrorList{field.Required(path,
			fmt.Sprintf("valid values: %q, %q", corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever))}
	case corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever:
		if s.PodFailurePolicy != nil && p != corev1.RestartPolicyNever {
			return field.ErrorList{field.Invalid(path, p,
				fmt.Sprintf("only %q is supported when podFailurePolicy is specified", corev1.RestartPolicyNever))}
		}
		return nil
	default:
		return field.ErrorList{field.NotSupported(path, p,
			[]corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever})}
	}
}

func validateManagedBy(name *string, path *field.Path) field.ErrorList {
	if name == nil {
		return nil
	}
	errs := validation.IsDomainPrefixedPath(path, *name)
	if len(*name) > maxManagedBy {
		errs = append(errs, field.TooLong(path, *name, maxManagedBy))
	}
	return errs
}

func validateReplacement(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if s.PodReplacementPolicy == nil {
		return nil
	}
	valid := []batchv1.PodReplacementPolicy{batchv1.Failed}
	if s.PodFailurePolicy == nil {
		valid = append(valid, batchv1.TerminatingOrFailed)
	}
	return validate.OneOf(path, *s.PodReplacementPolicy, valid...)
}

// validateMode checks the completion mode, and what only jobs with indexes may have.
func validateMode(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	if s.CompletionMode == nil {
		return requireIndexed(s, path)
	}
	switch *s.CompletionMode {
	case batchv1.NonIndexedCompletion:
		return requireIndexed(s, path)
	case batchv1.IndexedCompletion:
		return validateIndexed(s, path)
	}
	err := field.NotSupported(path.Child("completionMode"), *s.CompletionMode,
		[]string{string(batchv1.NonIndexedCompletion), string(batchv1.IndexedCompletion)})
	return field.ErrorList{err}
}

// requireIndexed finds what only jobs with indexes may have.
func requireIndexed(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	const message = "requires indexed completion mode"
	var errs field.ErrorList
	if n := s.BackoffLimitPerIndex; n != nil {
		errs = append(errs, field.Invalid(path.Child("backoffLimitPerIndex"), *n, message))
	}
	if n := s.MaxFailedIndexes; n != nil {
		errs = append(errs, field.Invalid(path.Child("maxFailedIndexes"), *n, message))
	}
	return errs
}

func validateIndexed(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	completions, parallelism, failed := path.Child("completions"), path.Child("parallelism"),
		path.Child("maxFailedIndexes")
	if s.Completions == nil {
		return append(errs, field.Required(completions,
			fmt.Sprintf("when completion mode is %s", batchv1.IndexedCompletion)))
	}
	if p := deref(s.Parallelism); p > maxIndexedParallelism {
		errs = append(errs, field.Invalid(parallelism, p,
			fmt.Sprintf("must be less than or equal to %d when completion mode is %s", maxIndexedParallelism,
				batchv1.IndexedCompletion)))
	}
	if m := s.MaxFailedIndexes; m != nil {
		if *m > *s.Completions {
			errs = append(errs, field.Invalid(failed, *m, "must be less than or equal to completions"))
		}
		if *m > maxFailedIndexes {
			errs = append(errs, field.Invalid(failed, *m,
				fmt.Sprintf("must be less than or equal to %d", maxFailedIndexes)))
		}
	}
	if *s.Completions <= maxTracked || s.BackoffLimitPerIndex == nil {
		return errs
	}
	few := fmt.Sprintf("must be less than or equal to %d when completions are above %d and used with backoff limit per index", maxTrackedFew, maxTracked)
	if m := s.MaxFailedIndexes; m == nil {
		errs = append(errs, field.Required(failed,
			fmt.Sprintf("must be specified when completions is above %d", maxTracked)))
	} else if *m > maxTrackedFew {
		errs = append(errs, field.Invalid(failed, *m, few))
	}
	if p := deref(s.Parallelism); p > maxTrackedFew {
		errs = append(errs, field.Invalid(parallelism, p, few))
	}
	return errs
}

// indexesError turns what package indexes says into an error of the field.
func indexesError(path *field.Path, text, name string, err error) *field.Error {
	return field.Invalid(path, text, strings.Join([]string{"error parsing", name + ":", err.Error()}, " "))
}
