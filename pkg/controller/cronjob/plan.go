package cronjob

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"bonsai/api/batch"
)

// soon is added to the time of the next run, so that the clock has passed it for certain.
const soon = 100 * time.Millisecond

// state is one CronJob with its jobs.
//
// It is made for one round by one worker; decide has no other input.
type state struct {
	cron *batchv1.CronJob
	jobs []*batchv1.Job
	now  time.Time
	// edited is when the schedule or its time zone was changed, zero if that was not seen.
	edited time.Time
	// here are the active jobs that are no longer the cron job's, but still there.
	here map[types.UID]bool
}

// plan is the next step.
//
// carryOut takes the parts in this order: remove and replace, create, status.
type plan struct {
	// status is to be stored when the rest is done; with create it gets the new job.
	status batchv1.CronJobStatus
	// replace are active jobs, remove are finished ones beyond the history; both go, with their pods.
	replace, remove []*batchv1.Job
	create          *batchv1.Job
	at              time.Time // for which create is
	wait            time.Duration
	says            []says
}

// says is an event.
type says struct{ kind, reason, message string }

func (p *plan) say(kind, reason, format string, args ...any) {
	p.says = append(p.says, says{kind, reason, fmt.Sprintf(format, args...)})
}

func deref[T any](p *T) T {
	var v T
	if p != nil {
		v = *p
	}
	return v
}

// scheduled is the time for which a job was made by its cron job; false for one that somebody made by hand.
func scheduled(j *batchv1.Job) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, j.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	return at, err == nil
}

// decide finds the next step: first what became of earlier jobs, because the concurrency policy looks at the active
// ones; then which finished ones are too many; last the job that is due. A CronJob that is being deleted starts nothing
// more.
func (s *state) decide() plan {
	p := plan{status: *s.cron.Status.DeepCopy()}
	s.follow(&p)
	s.trim(&p)
	if s.cron.DeletionTimestamp == nil {
		s.run(&p)
	}
	return p
}

// follow brings the list of active jobs up to date.
//
// A job that carries the time it is for is one of ours even if the status does not list it: its creation succeeded and
// the write of the status failed.
func (s *state) follow(p *plan) {
	st := &p.status
	known := map[types.UID]bool{}
	for _, j := range s.jobs {
		known[j.UID] = true
		listed := slices.ContainsFunc(st.Active, func(r corev1.ObjectReference) bool { return r.UID == j.UID })
		end := batch.Finished(&j.Status)
		switch at, ours := scheduled(j); {
		// Seen here for the first time: the event comes once.
		case end != nil && listed:
			unlist(st, j.UID)
			p.say(corev1.EventTypeNormal, "SawCompletedJob", "Saw completed job: %s, condition: %v", j.Name, end.Type)
		case end == nil && !listed && ours: // the status that lists it was not stored
			list(st, j)
			s.note(st, at)
		case end == nil && !listed:
			p.say(corev1.EventTypeWarning, "UnexpectedJob",
				"Saw a job that the controller did not create or forgot: %s", j.Name)
		}
		if t := j.Status.CompletionTime; end != nil && end.Type == batchv1.JobComplete && t != nil &&
			(st.LastSuccessfulTime == nil || st.LastSuccessfulTime.Before(t)) {
			st.LastSuccessfulTime = t.DeepCopy()
		}
	}
	for _, r := range slices.Clone(st.Active) {
		if !known[r.UID] && !s.here[r.UID] {
			unlist(st, r.UID)
			p.say(corev1.EventTypeNormal, "MissingJob", "Active job went missing: %v", r.Name)
		}
	}
}

// note keeps the latest time for which a job was made.
//
// It never goes back: an earlier time would let missed runs be made up for twice.
func (s *state) note(st *batchv1.CronJobStatus, at time.Time) {
	if st.LastScheduleTime == nil || at.After(st.LastScheduleTime.Time) {
		st.LastScheduleTime = new(metav1.NewTime(at))
	}
}

func unlist(st *batchv1.CronJobStatus, uid types.UID) {
	st.Active = slices.DeleteFunc(st.Active, func(r corev1.ObjectReference) bool { return r.UID == uid })
}

func list(st *batchv1.CronJobStatus, j *batchv1.Job) {
	st.Active = append(st.Active, corev1.ObjectReference{
		Kind: "Job", APIVersion: batchv1.SchemeGroupVersion.String(), Namespace: j.Namespace, Name: j.Name, UID: j.UID,
		ResourceVersion: j.ResourceVersion,
	})
}

// trim finds the finished jobs that are more than the history is to keep, the oldest first.
//
// A nil limit keeps all; the defaults are 3 for successful and 1 for failed jobs. All that exceed go in one round.
func (s *state) trim(p *plan) {
	oldest := func(t batchv1.JobConditionType, limit *int32) {
		if limit == nil {
			return
		}
		var ended []*batchv1.Job
		for _, j := range s.jobs {
			if end := batch.Finished(&j.Status); end != nil && end.Type == t && j.DeletionTimestamp == nil {
				ended = append(ended, j)
			}
		}
		slices.SortFunc(ended, func(a, b *batchv1.Job) int {
			return cmp.Or(started(a).Compare(started(b)), cmp.Compare(a.Name, b.Name))
		})
		p.remove = append(p.remove, ended[:max(len(ended)-int(*limit), 0)]...)
	}
	oldest(batchv1.JobComplete, s.cron.Spec.SuccessfulJobsHistoryLimit)
	oldest(batchv1.JobFailed, s.cron.Spec.FailedJobsHistoryLimit)
}

// started falls back to the creation for a job that failed before it began.
func started(j *batchv1.Job) time.Time {
	if j.Status.StartTime != nil {
		return j.Status.StartTime.Time
	}
	return j.CreationTimestamp.Time
}

// run plans the job that is due, if it may start. An invalid time zone or schedule, and suspension, ask for no further
// look: only a change of the object can help, and that is an event.
func (s *state) run(p *plan) {
	spec := &s.cron.Spec
	if spec.TimeZone != nil {
		if _, err := batch.LoadTimeZone(*spec.TimeZone); err != nil {
			p.say(corev1.EventTypeWarning, "UnknownTimeZone", "invalid timeZone: %q: %s", *spec.TimeZone, err)
			return
		}
	}
	if deref(spec.Suspend) {
		return
	}
	when, err := schedule(spec)
	if err != nil {
		p.say(corev1.EventTypeWarning, "UnparseableSchedule", "unparseable schedule: %q : %s", spec.Schedule, err)
		return
	}
	// With the status of this round: follow may just have found the job of a time.
	with := *s.cron
	with.Status = p.status
	d, err := dueAt(when, earliest(&with, s.edited, s.now), s.now)
	if err != nil {
		p.say(corev1.EventTypeWarning, "InvalidSchedule", "invalid schedule: %s : %s", spec.Schedule, err)
		return
	}
	if !d.next.IsZero() {
		p.wait = d.next.Sub(s.now) + soon
	}
	if d.missed {
		p.say(corev1.EventTypeWarning, "TooManyMissedTimes",
			"too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
	}
	if !d.at.IsZero() {
		s.start(d.at, p)
	}
}

// start plans the job for a time, unless it is too late for it, the job exists, or Forbid finds another one active.
// With Replace the active jobs go.
func (s *state) start(at time.Time, p *plan) {
	spec := &s.cron.Spec
	if d := spec.StartingDeadlineSeconds; d != nil && at.Add(time.Duration(*d)*time.Second).Before(s.now) {
		p.say(corev1.EventTypeWarning, "MissSchedule", "Missed scheduled time to start a job: %s",
			at.UTC().Format(time.RFC1123Z))
		return
	}
	name := nameAt(s.cron, at)
	if slices.ContainsFunc(p.status.Active, func(r corev1.ObjectReference) bool { return r.Name == name }) {
		return
	}
	switch {
	case spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(p.status.Active) > 0:
		p.say(corev1.EventTypeNormal, "JobAlreadyActive",
			"Not starting job because prior execution is running and concurrency policy is Forbid")
		return
	case spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent:
		for _, j := range s.jobs {
			if slices.ContainsFunc(p.status.Active, func(r corev1.ObjectReference) bool { return r.UID == j.UID }) {
				p.replace = append(p.replace, j)
				unlist(&p.status, j.UID)
			}
		}
	}
	p.create, p.at = s.jobAt(name, at), at
}

// jobAt makes the job for a time.
//
// The annotation has the time in the schedule's zone, as users wrote it. The name does not: it counts from the epoch.
func (s *state) jobAt(name string, at time.Time) *batchv1.Job {
	t := s.cron.Spec.JobTemplate.DeepCopy()
	if zone := s.cron.Spec.TimeZone; zone != nil {
		if location, err := batch.LoadTimeZone(*zone); err == nil {
			at = at.In(location)
		}
	}
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.cron.Namespace, Name: name, Labels: t.Labels, Annotations: t.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s.cron, kind())},
		},
		Spec: t.Spec,
	}
	if j.Annotations == nil {
		j.Annotations = map[string]string{}
	}
	j.Annotations[batchv1.CronJobScheduledTimestampAnnotation] = at.Format(time.RFC3339)
	return j
}
