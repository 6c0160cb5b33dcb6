package batch

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/validate"
)

// maxCronJobName leaves room for the eleven characters that a job's name adds to its cron job's: a job's own name is a
// label's value of 63 at most.
const maxCronJobName = 63 - 11

func validateCronJobName(name string) field.ErrorList {
	if len(name) <= maxCronJobName {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "name"), name,
		fmt.Sprintf("must be no more than %d characters", maxCronJobName))}
}

// validateCronJob checks a cron job; old is nil for a new one. A time zone that was valid once does not stand in the
// way of changes of other fields.
func validateCronJob(c, old *batchv1.CronJob) field.ErrorList {
	path := field.NewPath("spec")
	s := &c.Spec
	var errs field.ErrorList
	if s.Schedule == "" {
		errs = append(errs, field.Required(path.Child("schedule"), ""))
	} else {
		errs = append(errs, validateSchedule(s, old != nil && namesZone(old.Spec.Schedule), path.Child("schedule"))...)
	}
	if s.StartingDeadlineSeconds != nil {
		errs = append(errs, apivalidation.ValidateNonnegativeField(*s.StartingDeadlineSeconds,
			path.Child("startingDeadlineSeconds"))...)
	}
	if old == nil || !apiequality.Semantic.DeepEqual(s.TimeZone, old.Spec.TimeZone) {
		errs = append(errs, validateTimeZone(s.TimeZone, path.Child("timeZone"))...)
	}
	errs = append(errs, validate.OneOf(path.Child("concurrencyPolicy"), s.ConcurrencyPolicy, batchv1.AllowConcurrent,
		batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent)...)
	errs = append(errs, validateJobTemplate(&s.JobTemplate.Spec, path.Child("jobTemplate", "spec"))...)
	errs = append(errs, apivalidation.ValidateNonnegativeField(int64(deref(s.SuccessfulJobsHistoryLimit)),
		path.Child("successfulJobsHistoryLimit"))...)
	return append(errs, apivalidation.ValidateNonnegativeField(int64(deref(s.FailedJobsHistoryLimit)),
		path.Child("failedJobsHistoryLimit"))...)
}

// validateJobTemplate checks the spec of the jobs to be made, which get their selector when they are.
func validateJobTemplate(s *batchv1.JobSpec, path *field.Path) field.ErrorList {
	errs := validateJobTemplateSpec(s, path)
	if s.Selector != nil {
		errs = append(errs, field.Invalid(path.Child("selector"), s.Selector, "`selector` will be auto-generated"))
	}
	if deref(s.ManualSelector) {
		errs = append(errs, field.NotSupported(path.Child("manualSelector"), *s.ManualSelector,
			[]string{"nil", "false"}))
	}
	return errs
}

// ParseSchedule reads a schedule: five fields, or one of @hourly, @every 5m and the like. The library panics at some
// schedules that name a time zone.
func ParseSchedule(text string) (schedule cron.Schedule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("invalid schedule format: %v", p)
		}
	}()
	return cron.ParseStandard(text)
}

// namesZone reports whether a schedule names a time zone itself, which cron jobs from before the field timeZone may do.
func namesZone(schedule string) bool { return strings.Contains(schedule, "TZ") }

func validateSchedule(s *batchv1.CronJobSpec, mayNameZone bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if _, err := ParseSchedule(s.Schedule); err != nil {
		errs = append(errs, field.Invalid(path, s.Schedule, err.Error()))
	}
	switch {
	case !namesZone(s.Schedule):
	case mayNameZone && s.TimeZone != nil:
		errs = append(errs, field.Invalid(path, s.Schedule,
			"cannot use both timeZone field and TZ or CRON_TZ in schedule"))
	case !mayNameZone:
		errs = append(errs, field.Invalid(path, s.Schedule,
			"cannot use TZ or CRON_TZ in schedule, use timeZone field instead"))
	}
	return errs
}

// LoadTimeZone is the location of that name in the machine's database, or in the one that is built in.
func LoadTimeZone(name string) (*time.Location, error) {
	location, err := time.LoadLocation(name)
	if err != nil {
		return nil, errors.New("unknown time zone " + name)
	}
	return location, nil
}

func validateTimeZone(name *string, path *field.Path) field.ErrorList {
	if name == nil {
		return nil
	}
	if *name == "" {
		return field.ErrorList{field.Invalid(path, *name, "timeZone must be nil or non-empty string")}
	}
	var errs field.ErrorList
	if strings.EqualFold(*name, "Local") {
		errs = append(errs, field.Invalid(path, *name,
			"timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"))
	}
	if _, err := LoadTimeZone(*name); err != nil {
		errs = append(errs, field.Invalid(path, *name, err.Error()))
	}
	return errs
}
