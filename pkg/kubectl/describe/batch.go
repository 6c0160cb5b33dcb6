package describe

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// maxIndexes bounds the text of completed indexes, in bytes.
const maxIndexes = 50

const unset = "<unset>"

// numberOrUnset returns a number with its unit, or <unset> if it is nil.
func numberOrUnset[T int32 | int64](n *T, unit string) string {
	if n == nil {
		return unset
	}
	return fmt.Sprintf("%d%s", *n, unit)
}

func job(d *describer, o *batchv1.Job) error {
	d.line(0, "Name:\t%s\nNamespace:\t%s\n", o.Name, o.Namespace)
	if o.Spec.Selector != nil {
		d.line(0, "Selector:\t%s\n", metav1.FormatLabelSelector(o.Spec.Selector))
	}
	d.labels(0, "Labels", o.Labels)
	d.annotations(0, o.Annotations)
	if owner := metav1.GetControllerOf(o); owner != nil {
		d.line(0, "Controlled By:\t%s/%s\n", owner.Kind, owner.Name)
	}
	s, st := &o.Spec, &o.Status
	d.line(0, "Parallelism:\t%s\nCompletions:\t%s\n", numberOrUnset(s.Parallelism, ""),
		numberOrUnset(s.Completions, ""))
	indexed := false
	if s.CompletionMode != nil {
		d.line(0, "Completion Mode:\t%s\n", *s.CompletionMode)
		indexed = *s.CompletionMode == batchv1.IndexedCompletion
	}
	if s.Suspend != nil {
		d.line(0, "Suspend:\t%v\n", *s.Suspend)
	}
	if s.BackoffLimit != nil {
		d.line(0, "Backoff Limit:\t%v\n", *s.BackoffLimit)
	}
	if s.TTLSecondsAfterFinished != nil {
		d.line(0, "TTL Seconds After Finished:\t%v\n", *s.TTLSecondsAfterFinished)
	}
	if st.StartTime != nil {
		d.line(0, "Start Time:\t%s\n", when(*st.StartTime))
	}
	if st.CompletionTime != nil {
		d.line(0, "Completed At:\t%s\n", when(*st.CompletionTime))
	}
	if st.StartTime != nil && st.CompletionTime != nil {
		d.line(0, "Duration:\t%s\n", duration.HumanDuration(st.CompletionTime.Sub(st.StartTime.Time)))
	}
	if s.ActiveDeadlineSeconds != nil {
		d.line(0, "Active Deadline Seconds:\t%ds\n", *s.ActiveDeadlineSeconds)
	}
	ready := ""
	if st.Ready != nil {
		ready = fmt.Sprintf(" (%d Ready)", *st.Ready)
	}
	d.line(0, "Pods Statuses:\t%d Active%s / %d Succeeded / %d Failed\n", st.Active, ready, st.Succeeded, st.Failed)
	if indexed {
		d.line(0, "Completed Indexes:\t%s\n", fewIndexes(st.CompletedIndexes))
	}
	writeTemplate(d, s.Template)
	return nil
}

// fewIndexes returns as many whole indexes as fit into maxIndexes.
func fewIndexes(text string) string {
	if text == "" {
		return "<none>"
	}
	if len(text) <= maxIndexes {
		return text
	}
	return text[:strings.LastIndex(text[:maxIndexes+1], ",")+1] + "..."
}

func cronJob(d *describer, o *batchv1.CronJob) error {
	d.line(0, "Name:\t%s\nNamespace:\t%s\n", o.Name, o.Namespace)
	d.labels(0, "Labels", o.Labels)
	d.annotations(0, o.Annotations)
	s := &o.Spec
	suspended := "False"
	if s.Suspend != nil && *s.Suspend {
		suspended = "True"
	}
	zone := unset
	if s.TimeZone != nil {
		zone = *s.TimeZone
	}
	d.line(0, "Schedule:\t%s\nConcurrency Policy:\t%s\nSuspend:\t%s\nTime Zone:\t%s\n", s.Schedule, s.ConcurrencyPolicy,
		suspended, zone)
	d.line(0, "Successful Job History Limit:\t%s\nFailed Job History Limit:\t%s\n",
		numberOrUnset(s.SuccessfulJobsHistoryLimit, ""), numberOrUnset(s.FailedJobsHistoryLimit, ""))
	d.line(0, "Starting Deadline Seconds:\t%s\n", numberOrUnset(s.StartingDeadlineSeconds, "s"))
	t := &s.JobTemplate.Spec
	selector := unset
	if t.Selector != nil {
		selector = metav1.FormatLabelSelector(t.Selector)
	}
	d.line(0, "Selector:\t%s\nParallelism:\t%s\nCompletions:\t%s\n", selector, numberOrUnset(t.Parallelism, ""),
		numberOrUnset(t.Completions, ""))
	if t.ActiveDeadlineSeconds != nil {
		d.line(0, "Active Deadline Seconds:\t%ds\n", *t.ActiveDeadlineSeconds)
	}
	writeTemplate(d, t.Template)
	last := unset
	if o.Status.LastScheduleTime != nil {
		last = when(*o.Status.LastScheduleTime)
	}
	active := make([]string, len(o.Status.Active))
	for i := range o.Status.Active {
		active[i] = o.Status.Active[i].Name
	}
	d.line(0, "Last Schedule Time:\t%s\nActive Jobs:\t%s\n", last, joined(active))
	return nil
}
