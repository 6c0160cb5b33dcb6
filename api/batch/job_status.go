package batch

import (
	batchv1 "k8s.io/api/batch/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/batch/indexes"
)

// statusUpdate is one job's status before and after.
type statusUpdate struct {
	job      *batchv1.Job
	now, was *batchv1.JobStatus
	path     *field.Path
}

// validateJobStatusUpdate checks what all controllers of jobs keep to, whoever manages the job (spec.managedBy).
func validateJobStatusUpdate(obj, old *batchv1.Job) field.ErrorList {
	u := statusUpdate{obj, &obj.Status, &old.Status, field.NewPath("status")}
	errs := u.counts()
	errs = append(errs, u.uncounted()...)
	errs = append(errs, u.indexes()...)
	errs = append(errs, u.times()...)
	errs = append(errs, u.exclusive()...)
	return append(errs, u.lasting()...)
}

func (u statusUpdate) is(t batchv1.JobConditionType) bool { return IsTrue(u.now, t) }

func (u statusUpdate) invalidConditions(message string) *field.Error {
	return field.Invalid(u.path.Child("conditions"), field.OmitValueType{}, message)
}

func (u statusUpdate) counts() field.ErrorList {
	var errs field.ErrorList
	for _, n := range []struct {
		name  string
		value int32
	}{
		{"active", u.now.Active}, {"succeeded", u.now.Succeeded}, {"failed", u.now.Failed},
		{"ready", deref(u.now.Ready)}, {"terminating", deref(u.now.Terminating)},
	} {
		errs = append(errs, apivalidation.ValidateNonnegativeField(int64(n.value), u.path.Child(n.name))...)
	}
	if ready := deref(u.now.Ready); ready > max(u.now.Active, 0) {
		errs = append(errs, field.Invalid(u.path.Child("ready"), ready, "cannot set more ready pods than active"))
	}
	if u.now.Failed < u.was.Failed {
		errs = append(errs, field.Invalid(u.path.Child("failed"), u.now.Failed, "cannot decrease the failed counter"))
	}
	// An indexed job that has shrunk loses completed indexes.
	limit := int(deref(u.job.Spec.Completions))
	shrinks := Indexed(&u.job.Spec) && indexes.Read(u.was.CompletedIndexes, limit).Len() < int(u.was.Succeeded)
	if u.now.Succeeded < u.was.Succeeded && !shrinks {
		errs = append(errs, field.Invalid(u.path.Child("succeeded"), u.now.Succeeded,
			"cannot decrease the succeeded counter"))
	}
	if Finished(u.now) == nil {
		return errs
	}
	if n := u.now.Active; n > 0 {
		errs = append(errs, field.Invalid(u.path.Child("active"), n, "active>0 is invalid for finished job"))
	}
	if n := deref(u.now.Terminating); n > 0 {
		errs = append(errs, field.Invalid(u.path.Child("terminating"), n, "terminating>0 is invalid for finished job"))
	}
	return errs
}

// uncounted: each pod waits once to be counted, and none when the job is finished.
func (u statusUpdate) uncounted() field.ErrorList {
	pods := u.now.UncountedTerminatedPods
	if pods == nil {
		return nil
	}
	at := u.path.Child("uncountedTerminatedPods")
	var errs field.ErrorList
	if Finished(u.now) != nil && len(pods.Succeeded)+len(pods.Failed) > 0 {
		errs = append(errs, field.Invalid(at, pods, "must be empty for finished job"))
	}
	seen := sets.New[types.UID]()
	check := func(list []types.UID, at *field.Path) {
		for i, uid := range list {
			switch {
			case uid == "":
				errs = append(errs, field.Invalid(at.Index(i), uid, "must not be empty"))
			case seen.Has(uid):
				errs = append(errs, field.Duplicate(at.Index(i), uid))
			default:
				seen.Insert(uid)
			}
		}
	}
	check(pods.Succeeded, at.Child("succeeded"))
	check(pods.Failed, at.Child("failed"))
	return errs
}

// indexes checks the sets of indexes where they change, the job's completions apart: those may go below what is stored.
func (u statusUpdate) indexes() field.ErrorList {
	var errs field.ErrorList
	completed, failed := u.path.Child("completedIndexes"), u.path.Child("failedIndexes")
	limit := int(deref(u.job.Spec.Completions))
	readable := true
	completedChanged := u.now.CompletedIndexes != u.was.CompletedIndexes
	failedChanged := !apiequality.Semantic.DeepEqual(u.now.FailedIndexes, u.was.FailedIndexes)
	if completedChanged {
		if !Indexed(&u.job.Spec) {
			errs = append(errs, field.Invalid(completed, u.now.CompletedIndexes,
				"cannot set non-empty completedIndexes when non-indexed completion mode"))
		} else if _, err := indexes.Parse(u.now.CompletedIndexes, limit); err != nil {
			readable = false
			errs = append(errs, indexesError(completed, u.now.CompletedIndexes, "completedIndexes", err))
		}
	}
	if failedChanged && u.now.FailedIndexes != nil {
		if u.job.Spec.BackoffLimitPerIndex == nil {
			return append(errs, field.Invalid(failed, *u.now.FailedIndexes,
				"cannot set non-null failedIndexes when backoffLimitPerIndex is null"))
		}
		if _, err := indexes.Parse(*u.now.FailedIndexes, limit); err != nil {
			errs = append(errs, indexesError(failed, *u.now.FailedIndexes, "failedIndexes", err))
		}
	}
	if (completedChanged || failedChanged) && readable && u.now.FailedIndexes != nil &&
		u.job.Spec.BackoffLimitPerIndex != nil {
		both := indexes.Read(u.now.CompletedIndexes, limit).Intersect(indexes.Read(*u.now.FailedIndexes, limit))
		if len(both) > 0 {
			errs = append(errs, field.Invalid(failed, *u.now.FailedIndexes,
				"failedIndexes and completedIndexes overlap at index: "+
					indexes.Set{{First: both[0].First, Last: both[0].First}}.String()))
		}
	}
	return errs
}

func (u statusUpdate) times() field.ErrorList {
	var errs field.ErrorList
	start, end := u.path.Child("startTime"), u.path.Child("completionTime")
	if Finished(u.now) != nil && u.now.StartTime == nil {
		errs = append(errs, field.Required(start, "startTime is required for finished job"))
	}
	if u.was.StartTime != nil && !u.was.StartTime.Equal(u.now.StartTime) && !deref(u.job.Spec.Suspend) {
		errs = append(errs, field.Invalid(start, shown(u.now.StartTime),
			"field is immutable for unsuspended job once set"))
	}
	switch {
	case u.now.CompletionTime == nil:
		if u.is(batchv1.JobComplete) {
			errs = append(errs, field.Required(end, "completionTime is required for Complete jobs"))
		}
		return errs
	case !u.is(batchv1.JobComplete):
		errs = append(errs, field.Invalid(end, shown(u.now.CompletionTime),
			"cannot set completionTime when there is no Complete=True condition"))
	}
	if u.now.StartTime != nil && u.now.CompletionTime.Before(u.now.StartTime) {
		errs = append(errs, field.Invalid(end, shown(u.now.CompletionTime), "must be equal to or after `startTime`"))
	}
	if u.was.CompletionTime != nil && !u.was.CompletionTime.Equal(u.now.CompletionTime) {
		errs = append(errs, field.Invalid(end, shown(u.now.CompletionTime), apivalidation.FieldImmutableErrorMsg))
	}
	return errs
}

// shown is a time as errors show it.
func shown(t *metav1.Time) any {
	if t == nil {
		return nil
	}
	return *t
}

// exclusive checks the conditions that must not or only come together: a job ends one way, and that it will is said
// before.
func (u statusUpdate) exclusive() field.ErrorList {
	complete, failed := u.is(batchv1.JobComplete), u.is(batchv1.JobFailed)
	succeeding, failing := u.is(batchv1.JobSuccessCriteriaMet), u.is(batchv1.JobFailureTarget)
	var errs field.ErrorList
	for _, c := range []struct {
		bad     bool
		message string
	}{
		{complete && failed, "cannot set Complete=True and Failed=true conditions"},
		{complete && failing, "cannot set Complete=True and FailureTarget=true conditions"},
		{failed && !failing, "cannot set Failed=True condition without the FailureTarget=true condition"},
		{complete && !succeeding, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"},
		{succeeding && failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"},
		{succeeding && failing, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"},
		{complete && !succeeding && u.job.Spec.SuccessPolicy != nil,
			"cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"},
	} {
		if c.bad {
			errs = append(errs, u.invalidConditions(c.message))
		}
	}
	return errs
}

// lasting: what is said of a job's end is not taken back.
func (u statusUpdate) lasting() field.ErrorList {
	var errs field.ErrorList
	for _, t := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget} {
		if IsTrue(u.was, t) && !u.is(t) {
			errs = append(errs, u.invalidConditions("cannot disable the terminal "+string(t)+"=True condition"))
		}
	}
	if IsTrue(u.was, batchv1.JobSuccessCriteriaMet) && !u.is(batchv1.JobSuccessCriteriaMet) {
		errs = append(errs, u.invalidConditions("cannot disable the SuccessCriteriaMet=True condition"))
	}
	return errs
}
