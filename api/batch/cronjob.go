package batch

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/defaults"
	"bonsai/api/equal"
	"bonsai/api/podspec"
	"bonsai/api/resources"
)

func cronJobRow() resources.Row {
	spec, status := batchv1.CronJobSpec{}.SwaggerDoc(), batchv1.CronJobStatus{}.SwaggerDoc()
	return resources.Row{
		GVK: batchv1.SchemeGroupVersion.WithKind("CronJob"), Resource: "cronjobs", Singular: "cronjob",
		Namespaced:   true,
		ShortNames:   []string{"cj"},
		Categories:   []string{"all"},
		StoragePath:  "cronjobs",
		New:          resources.Make[batchv1.CronJob],
		Strategy:     cronJobStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(cronJobStatusStrategy().Strategy())},
		Columns: append([]metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Schedule", spec["schedule"]),
			resources.Column("Timezone", spec["timeZone"]),
			{Name: "Suspend", Type: "boolean", Description: spec["suspend"]},
			resources.IntColumn("Active", status["active"]),
			resources.Column("Last Schedule", status["lastScheduleTime"]),
			resources.AgeColumn(),
		}, templateColumns(batchv1.JobSpec{}.SwaggerDoc()["selector"])...),
		Cells: resources.Cells(func(c *batchv1.CronJob, now time.Time) []any {
			names, images := podspec.ContainerTexts(c.Spec.JobTemplate.Spec.Template.Spec.Containers)
			zone, last, suspended := "<none>", "<none>", "False"
			if c.Spec.TimeZone != nil {
				zone = *c.Spec.TimeZone
			}
			if t := c.Status.LastScheduleTime; t != nil {
				last = resources.Age(*t, now)
			}
			if deref(c.Spec.Suspend) {
				suspended = "True"
			}
			return []any{c.Name, c.Spec.Schedule, zone, suspended, int64(len(c.Status.Active)), last,
				resources.Age(c.CreationTimestamp, now),
				names, images, metav1.FormatLabelSelector(c.Spec.JobTemplate.Spec.Selector)}
		}),
	}
}

func cronJobStrategy() resources.Typed[*batchv1.CronJob] {
	return resources.Typed[*batchv1.CronJob]{
		Default: defaultCronJob,
		PrepareCreate: func(c *batchv1.CronJob) {
			c.Status = batchv1.CronJobStatus{}
			c.Spec.JobTemplate.Spec.Scheduling = nil // as of a Job
		},
		PrepareUpdate: func(obj, old *batchv1.CronJob) {
			obj.Status = *old.Status.DeepCopy()
			if old.Spec.JobTemplate.Spec.Scheduling == nil {
				obj.Spec.JobTemplate.Spec.Scheduling = nil
			}
		},
		Validate: func(c *batchv1.CronJob) field.ErrorList {
			return append(validateCronJobName(c.Name), validateCronJob(c, nil)...)
		},
		ValidateUpdate: validateCronJob,
		Warnings:       cronJobWarnings,
		SpecChanged:    func(obj, old *batchv1.CronJob) bool { return !equal.Semantic(&obj.Spec, &old.Spec) },
	}
}

func cronJobStatusStrategy() resources.Typed[*batchv1.CronJob] {
	s := cronJobStrategy()
	s.PrepareUpdate = func(obj, old *batchv1.CronJob) { obj.Spec = *old.Spec.DeepCopy() }
	s.ValidateUpdate = func(_, _ *batchv1.CronJob) field.ErrorList { return nil }
	s.SpecChanged, s.Warnings = nil, nil
	return s
}

func defaultCronJob(c *batchv1.CronJob) {
	s := &c.Spec
	defaultTemplates(&s.JobTemplate.Spec)
	defaults.Set(&s.ConcurrencyPolicy, batchv1.AllowConcurrent)
	defaults.SetPtr(&s.Suspend, false)
	defaults.SetPtr(&s.SuccessfulJobsHistoryLimit, 3)
	defaults.SetPtr(&s.FailedJobsHistoryLimit, 1)
}

func cronJobWarnings(obj, old *batchv1.CronJob) []string {
	var w []string
	if old == nil {
		w = podspec.NameWarnings(obj.Name, "Pod names and hostnames")
	}
	if old == nil || obj.Generation != old.Generation {
		t := &obj.Spec.JobTemplate.Spec.Template
		w = append(w, podspec.Warnings(&t.Spec, t.Annotations,
			field.NewPath("spec", "jobTemplate", "spec", "template"))...)
	}
	if namesZone(obj.Spec.Schedule) {
		w = append(w, "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details")
	}
	return w
}
