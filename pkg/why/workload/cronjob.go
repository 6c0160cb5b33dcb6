package workload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"bonsai/pkg/why"
)

// CronJob explains a CronJob that did not make a Job, and the newest Job that it made.
func CronJob(ctx context.Context, c *why.Case, o why.Object) (why.Answer, error) {
	cj, known := why.Get[batchv1.CronJob](ctx, c.World, o.Namespace, o.Name)
	if cj == nil {
		return why.Missing(ctx, c, o, known), nil
	}
	self := why.ObjectOf("batch", "CronJob", cj)
	if cj.DeletionTimestamp != nil {
		return going(ctx, c, self, cj)
	}
	a := why.Answer{Subject: self}
	last := "It has never made a Job"
	if cj.Status.LastScheduleTime != nil {
		last = fmt.Sprintf("It made its last Job %s ago", why.Span(c.Now.Sub(cj.Status.LastScheduleTime.Time)))
	}
	next, due, err := dueTimes(cj, c.Now)
	if err != nil {
		a.State = fmt.Sprintf("%s has a schedule that cannot be read: %s.", self, why.Quote(err.Error()))
		return a, nil
	}
	a.State = fmt.Sprintf("%s (%s) is next due in %s. %s.", self, zoned(cj), why.Span(next.Sub(c.Now)), last)
	if cj.Spec.Suspend != nil && *cj.Spec.Suspend {
		a.State = fmt.Sprintf("%s is suspended. %s.", self, last)
		a.Causes = []why.Cause{{Code: "Suspended", Text: "Its spec.suspend is true: it makes no Jobs until that is " +
			"changed.",
			Evidence: []why.Evidence{why.See(self, ".spec.suspend", "true")},
			Fixes: []why.Fix{{Text: "Let it run.", Command: why.Command(
				`kubectl patch cronjob %s%s --type=merge -p '{"spec":{"suspend":false}}'`, cj.Name, self.Flag())}}}}
		return a, nil
	}
	jobs := jobsOf(ctx, c, cj)
	if due.IsZero() {
		a.Causes = append(a.Causes, why.Cause{Code: "NotDueYet",
			Text: fmt.Sprintf("No time of its schedule %q has come since it was made, %s ago. The next is %s.",
				zoned(cj),
				why.Span(c.Now.Sub(cj.CreationTimestamp.Time)), next.UTC().Format(time.RFC3339)),
			Evidence: []why.Evidence{why.See(self, ".spec.schedule", cj.Spec.Schedule)}})
	} else if lastMade(cj).Before(due) {
		a.Causes = append(a.Causes, missed(ctx, c, cj, self, due, jobs)...)
	}
	if len(jobs) > 0 {
		j := why.ObjectOf("batch", "Job", jobs[0])
		because, err := c.Causes(ctx, j)
		if err != nil {
			return a, err
		}
		if len(because) > 0 {
			a.Causes = append(a.Causes, why.Cause{Code: "JobFailed",
				Text: fmt.Sprintf("Its newest Job, %s, is not well.", j.Name), Because: because,
				Evidence: []why.Evidence{why.See(j, ".status.conditions", "see below")}})
		}
	}
	if len(a.Causes) == 0 || why.UnderWay(a.Causes) {
		if causes := replaced(ctx, c, cj, self, jobs, next); len(causes) > 0 {
			a.Causes = causes
		}
	}
	a.Well = len(a.Causes) == 0
	if len(jobs) == 0 && cj.Status.LastScheduleTime != nil && len(cj.Status.Active) == 0 {
		if cause, failing := removed(c, cj, self); cause.Text != "" {
			a.Causes, a.Well = append(a.Causes, cause), a.Well && !failing
		}
	}
	return a, nil
}

// replaced explains a CronJob whose Jobs never end, since each is replaced by the next before it has done its work.
func replaced(ctx context.Context, c *why.Case, cj *batchv1.CronJob, self why.Object, jobs []*batchv1.Job,
	next time.Time) []why.Cause {
	s, err := cron.ParseStandard(cj.Spec.Schedule)
	if cj.Spec.ConcurrencyPolicy != batchv1.ReplaceConcurrent || len(cj.Status.Active) == 0 || err != nil {
		return nil
	}
	period := s.Next(next).Sub(next)
	old := cj.CreationTimestamp.Time
	if t := cj.Status.LastSuccessfulTime; t != nil {
		old = t.Time
	}
	failed := slices.ContainsFunc(jobs, func(j *batchv1.Job) bool { return jobCondition(j, batchv1.JobFailed) != nil })
	var deleted *corev1.Event // a run that was replaced since, and not one that had failed and was one too many
	for _, e := range c.Events(ctx, self) {
		if e.Reason == "SuccessfulDelete" && !failed && why.LastSeen(e).After(old) {
			deleted = e
			break
		}
	}
	const runs = 3 // that would have ended by now; events go after an hour
	if deleted == nil && c.Now.Sub(old) < runs*period {
		return nil
	}
	cause := why.Cause{Code: "ReplacedBeforeEnd",
		Text: fmt.Sprintf("No Job of it has succeeded for %s. Its concurrencyPolicy is Replace: each run ends the one "+
			"before it, and one is due every %s.", why.Span(c.Now.Sub(old)), why.Span(period)),
		Evidence: []why.Evidence{why.See(self, ".spec.concurrencyPolicy", string(cj.Spec.ConcurrencyPolicy))},
		Fixes:    []why.Fix{{Text: "Run it less often than its Jobs take, or use concurrencyPolicy Forbid."}}}
	if deleted != nil {
		cause.Evidence = append(cause.Evidence, why.SeeEvent(deleted))
	}
	return []why.Cause{cause}
}

// removed explains a CronJob whose Jobs are all gone: those that succeed and those that fail are kept
// by a limit each, and both go after a time if they say so. The text is empty if neither is why. failing says that the
// last one did not succeed.
func removed(c *why.Case, cj *batchv1.CronJob, self why.Object) (cause why.Cause, failing bool) {
	success := cj.Status.LastSuccessfulTime
	made := cj.Status.LastScheduleTime
	failing = success == nil || success.Before(made)
	limit, field, what := cj.Spec.SuccessfulJobsHistoryLimit, "successfulJobsHistoryLimit", "succeeded"
	if failing {
		limit, field, what = cj.Spec.FailedJobsHistoryLimit, "failedJobsHistoryLimit", "failed"
	}
	cause = why.Cause{Code: "JobsRemoved", Evidence: []why.Evidence{why.See(self, ".status.lastScheduleTime",
		made.UTC().Format(time.RFC3339), *made)}}
	seen := "No Job of it has ever succeeded"
	if success != nil {
		seen = fmt.Sprintf("Its last Job that succeeded did so %s ago", why.Span(c.Now.Sub(success.Time)))
		cause.Evidence = append(cause.Evidence, why.See(self, ".status.lastSuccessfulTime",
			success.UTC().Format(time.RFC3339), *success))
	}
	switch ttl := cj.Spec.JobTemplate.Spec.TTLSecondsAfterFinished; {
	case limit != nil && *limit == 0:
		cause.Text = fmt.Sprintf("%s. None is left, since those that have %s are removed at once (%s is 0).", seen, what,
			field)
		cause.Evidence = append(cause.Evidence, why.See(self, ".spec."+field, "0"))
		cause.Fixes = []why.Fix{{Text: "Keep some, to look at their pods and logs.", Command: why.Command(
			"kubectl patch cronjob %s%s --type=merge -p %s", cj.Name, self.Flag(), fmt.Sprintf(`{"spec":{%q:3}}`, field))}}
	case ttl != nil:
		cause.Text = fmt.Sprintf("%s. None is left, since they are removed %d s after their end "+
			"(ttlSecondsAfterFinished).", seen, *ttl)
		cause.Evidence = append(cause.Evidence, why.See(self, ".spec.jobTemplate.spec.ttlSecondsAfterFinished",
			fmt.Sprint(*ttl)))
	}
	return cause, failing
}

// missed explains a time that has come without a Job.
func missed(ctx context.Context, c *why.Case, cj *batchv1.CronJob, self why.Object, due time.Time,
	jobs []*batchv1.Job) []why.Cause {
	active := 0
	var name string
	for _, j := range jobs {
		if jobCondition(j, batchv1.JobComplete) == nil && jobCondition(j, batchv1.JobFailed) == nil {
			active++
			name = j.Name
		}
	}
	ago := why.Span(c.Now.Sub(due))
	if cj.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && active > 0 {
		return []why.Cause{{Code: "ConcurrencyForbidden",
			Text: fmt.Sprintf("It was due %s ago, but Job %s still runs, and its concurrencyPolicy is Forbid.", ago,
				name),
			Evidence: []why.Evidence{why.See(self, ".spec.concurrencyPolicy", string(cj.Spec.ConcurrencyPolicy)),
				why.See(why.Object{Group: "batch", Kind: "Job", Namespace: cj.Namespace, Name: name},
					".status.active", "1")},
			Fixes: []why.Fix{{Text: "End that Job, or allow concurrent ones."}}}}
	}
	if d := cj.Spec.StartingDeadlineSeconds; d != nil && c.Now.Sub(due) > time.Duration(*d)*time.Second {
		return []why.Cause{{Code: "StartingDeadlineMissed",
			Text: fmt.Sprintf("It was due %s ago, and may only be started within startingDeadlineSeconds (%d s): "+
				"the time was missed.", ago, *d),
			Evidence: []why.Evidence{why.See(self, ".spec.startingDeadlineSeconds", fmt.Sprint(*d))},
			Fixes: []why.Fix{{Text: "Run it now by hand, or allow a later start by a larger startingDeadlineSeconds.",
				Command: why.Command("kubectl create job %s-now%s --from=cronjob/%s", cj.Name, self.Flag(), cj.Name)}}}}
	}
	for _, e := range c.Events(ctx, self) {
		switch e.Reason {
		case "FailedCreate":
			if why.LastSeen(e).Before(due) {
				continue
			}
			return []why.Cause{{Code: "JobsNotCreated", Because: []why.Cause{failedCreate(ctx, c, e)},
				Text: fmt.Sprintf("It was due %s ago, and its Job cannot be created.", ago)}}
		case "TooManyMissedTimes", "UnknownTimeZone", "UnparseableSchedule":
			return []why.Cause{{Code: e.Reason, Text: "The controller says: " + why.Quote(e.Message) + ".",
				Evidence: []why.Evidence{why.SeeEvent(e)}}}
		}
	}
	const patience = 30 * time.Second // of the controller, which has much to do
	if c.Now.Sub(due) < patience {
		return nil
	}
	return []why.Cause{{Code: "ScheduleMissed",
		Text: fmt.Sprintf("It was due %s ago, and there is no Job of that time. Does kube-controller-manager "+
			"run?", ago),
		Evidence: []why.Evidence{why.See(self, ".status.lastScheduleTime", fmt.Sprint(cj.Status.LastScheduleTime))}}}
}

// dueTimes returns the next time of a schedule, and the newest that has come since the CronJob was made; zero for none.
func dueTimes(cj *batchv1.CronJob, now time.Time) (next, due time.Time, err error) {
	s, err := cron.ParseStandard(cj.Spec.Schedule)
	if err != nil {
		return next, due, err
	}
	zone := time.UTC // that of kube-controller-manager is not known; most run in UTC
	if z := cj.Spec.TimeZone; z != nil {
		if zone, err = time.LoadLocation(*z); err != nil {
			return next, due, err
		}
	}
	now = now.In(zone)
	next = s.Next(now)
	made := cj.CreationTimestamp.In(zone)
	if last := lastMade(cj).In(zone); !last.IsZero() && last.Before(made) {
		made = last // an object that was restored has an earlier life
	}
	if made.IsZero() {
		made = now
	}
	// Back from now in growing steps, so that a schedule of every minute and one of every year both take few.
	for back := 2 * time.Minute; ; back *= 4 {
		from := now.Add(-back)
		if from.Before(made) {
			from = made
		}
		for t := s.Next(from); !t.IsZero() && !t.After(now); t = s.Next(t) {
			due = t
		}
		if !due.IsZero() || !from.After(made) {
			return next, due, nil
		}
	}
}

func lastMade(cj *batchv1.CronJob) time.Time {
	if cj.Status.LastScheduleTime == nil {
		return time.Time{}
	}
	return cj.Status.LastScheduleTime.Time
}

func zoned(cj *batchv1.CronJob) string {
	if z := cj.Spec.TimeZone; z != nil {
		return cj.Spec.Schedule + " " + *z
	}
	return cj.Spec.Schedule
}

// jobsOf returns the Jobs that a CronJob has made, the newest first.
func jobsOf(ctx context.Context, c *why.Case, cj *batchv1.CronJob) (jobs []*batchv1.Job) {
	all, _ := why.List[batchv1.Job](ctx, c.World, cj.Namespace, nil)
	for _, j := range all {
		if o := metav1.GetControllerOf(j); o != nil && o.UID == cj.UID {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, func(a, b *batchv1.Job) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	return jobs
}
