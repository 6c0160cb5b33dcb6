package batch

import (
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"bonsai/api/equal"
	"bonsai/api/podspec"
	"bonsai/api/resources"
)

func jobRow() resources.Row {
	spec, status := batchv1.JobSpec{}.SwaggerDoc(), batchv1.JobStatus{}.SwaggerDoc()
	return resources.Row{
		GVK: batchv1.SchemeGroupVersion.WithKind("Job"), Resource: "jobs", Singular: "job",
		Namespaced:   true,
		Categories:   []string{"all"},
		StoragePath:  "jobs",
		New:          resources.Make[batchv1.Job],
		Strategy:     jobStrategy().Strategy(),
		Subresources: []resources.Subresource{resources.Status(jobStatusStrategy().Strategy())},
		FieldNames:   []string{"status.successful"},
		Fields: resources.Fields(func(j *batchv1.Job) fields.Set {
			return fields.Set{"status.successful": strconv.Itoa(int(j.Status.Succeeded))}
		}),
		Columns: append([]metav1.TableColumnDefinition{
			resources.NameColumn(),
			resources.Column("Status", "Status of the job."),
			resources.Column("Completions", status["succeeded"]),
			resources.Column("Duration", "Time required to complete the job."),
			resources.AgeColumn(),
		}, templateColumns(spec["selector"])...),
		Cells: resources.Cells(func(j *batchv1.Job, now time.Time) []any {
			names, images := podspec.ContainerTexts(j.Spec.Template.Spec.Containers)
			return []any{j.Name, stateText(j), completionsText(j), durationText(j, now),
				resources.Age(j.CreationTimestamp, now),
				names, images, metav1.FormatLabelSelector(j.Spec.Selector)}
		}),
	}
}

// stateText is a job's state in one word: how it ended, or else what is happening to it.
func stateText(j *batchv1.Job) string {
	switch {
	case IsTrue(&j.Status, batchv1.JobComplete):
		return string(batchv1.JobComplete)
	case IsTrue(&j.Status, batchv1.JobFailed):
		return string(batchv1.JobFailed)
	case j.DeletionTimestamp != nil:
		return "Terminating"
	}
	for _, t := range []batchv1.JobConditionType{batchv1.JobSuspended, batchv1.JobFailureTarget,
		batchv1.JobSuccessCriteriaMet} {
		if IsTrue(&j.Status, t) {
			return string(t)
		}
	}
	return "Running"
}

func completionsText(j *batchv1.Job) string {
	if n := j.Spec.Completions; n != nil {
		return fmt.Sprintf("%d/%d", j.Status.Succeeded, *n)
	}
	if p := deref(j.Spec.Parallelism); p > 1 {
		return fmt.Sprintf("%d/1 of %d", j.Status.Succeeded, p)
	}
	return fmt.Sprintf("%d/1", j.Status.Succeeded)
}

func durationText(j *batchv1.Job, now time.Time) string {
	switch start, end := j.Status.StartTime, j.Status.CompletionTime; {
	case start == nil:
		return ""
	case end == nil:
		return duration.HumanDuration(now.Sub(start.Time))
	default:
		return duration.HumanDuration(end.Sub(start.Time))
	}
}

// Condition returns a job's condition of a type, or nil.
func Condition(s *batchv1.JobStatus, t batchv1.JobConditionType) *batchv1.JobCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == t {
			return &s.Conditions[i]
		}
	}
	return nil
}

// IsTrue reports whether a job's condition of a type is true.
func IsTrue(s *batchv1.JobStatus, t batchv1.JobConditionType) bool {
	c := Condition(s, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Finished returns the condition by which a job has come to its end, complete or failed, or nil.
func Finished(s *batchv1.JobStatus) *batchv1.JobCondition {
	for _, t := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if IsTrue(s, t) {
			return Condition(s, t)
		}
	}
	return nil
}

// Indexed reports whether each pod of the job is for a completion index of its own.
func Indexed(s *batchv1.JobSpec) bool {
	return deref(s.CompletionMode) == batchv1.IndexedCompletion
}

func jobStrategy() resources.Typed[*batchv1.Job] {
	return resources.Typed[*batchv1.Job]{
		Default: defaultJob,
		PrepareCreate: func(j *batchv1.Job) {
			j.Status = batchv1.JobStatus{}
			j.Spec.Scheduling = nil // of a feature that is off by default (WorkloadWithJob)
			generateSelector(j)
		},
		PrepareUpdate: func(obj, old *batchv1.Job) {
			obj.Status = *old.Status.DeepCopy()
			if old.Spec.Scheduling == nil {
				obj.Spec.Scheduling = nil
			}
		},
		Canonicalize:   labelJob, // of labels that were only generated its validation says nothing
		Validate:       func(j *batchv1.Job) field.ErrorList { return validateJob(j, nil) },
		ValidateUpdate: validateJobUpdate,
		Warnings:       jobWarnings,
		SpecChanged:    func(obj, old *batchv1.Job) bool { return !equal.Semantic(&obj.Spec, &old.Spec) },
		DefaultOrphan:  true,
		OrphanWarning:  "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
	}
}

func jobStatusStrategy() resources.Typed[*batchv1.Job] {
	s := jobStrategy()
	s.PrepareUpdate = func(obj, old *batchv1.Job) { obj.Spec = *old.Spec.DeepCopy() }
	s.ValidateUpdate = validateJobStatusUpdate
	s.SpecChanged, s.Warnings = nil, nil
	return s
}

// jobWarnings are the template's, where it is new or has changed, and those of the job itself.
func jobWarnings(obj, old *batchv1.Job) []string {
	var w []string
	if old == nil || obj.Generation != old.Generation {
		w = podspec.Warnings(&obj.Spec.Template.Spec, obj.Spec.Template.Annotations, field.NewPath("spec", "template"))
	}
	if old == nil {
		w = append(w, podspec.NameWarnings(obj.Name, "Pod names and hostnames")...)
	}
	const many, crowd = 100_000, 10_000
	if Indexed(&obj.Spec) && deref(obj.Spec.Completions) > many && deref(obj.Spec.Parallelism) > crowd {
		w = append(w, "spec: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail")
	}
	return w
}
